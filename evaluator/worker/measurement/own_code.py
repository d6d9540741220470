"""Whether machine code runs in this process that neither Python nor an installed package brought."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

_INSTALLED = tuple(
    {
        "/usr/",
        "/lib",
        *(prefix.rstrip("/") + "/" for prefix in (sys.prefix, sys.base_prefix, *sysconfig.get_paths().values())),
    }
)


def has_own_code() -> bool:
    """Whether a library is loaded that lies elsewhere, such as an extension that the candidate compiled."""
    for line in Path("/proc/self/maps").read_text("utf-8", "replace").splitlines():
        _, rights, _, _, _, *file = line.split(maxsplit=5)
        if "x" in rights and file and file[0].startswith("/") and not file[0].startswith(_INSTALLED):
            return True
    return False
