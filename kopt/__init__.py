"""The doors of kopt: the command line. Parse, call, render; no logic."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("kopt")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"
