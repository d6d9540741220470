"""The version of kopt that is installed."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("kopt")
except PackageNotFoundError:  # a source tree that was never installed
    VERSION = "0+unknown"
