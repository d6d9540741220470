"""Loads matplotlib's fonts before a test runs: its first start on a machine asks `fc-list`, a process, for them."""

import contextlib

with contextlib.suppress(ImportError):
    import matplotlib.font_manager  # noqa: F401 - its import is what loads the fonts
