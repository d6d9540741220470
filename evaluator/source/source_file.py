"""Read a source file, and tell CUDA from Python. Nothing is executed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from kbs.common.errors import UsageError
from kbs.common.json_model import Record

MAX_BYTES = 2_000_000
"""No kernel file is larger; what is larger is a data file or a mistake."""


class SourceFile(Record):
    """A file of source text."""

    name: str
    """File name without its folder."""
    text: str
    """Content, without a byte order mark."""

    @property
    def hash(self) -> str:
        """SHA-256 of the text's UTF-8, in hex."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


def read_source(path: Path, role: str) -> SourceFile:
    """Read a file; `role` (candidate, reference …) says in messages which one it is.

    UsageError `file_not_found`, `file_unreadable`, `file_not_text` (UTF-8 only) or `file_too_large` (2 MB).
    """
    hint = f"Give the {role} as a file of Python or CUDA source."
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"the {role} {path} is not a file", code="file_unreadable", hint=hint)
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(f"the {role} {path} does not exist", code="file_not_found", hint="Check the path.") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        why = getattr(error, "strerror", None) or str(error)
        hint = "Check its path and permissions."
        raise UsageError(f"the {role} {path} cannot be read: {why}", code="file_unreadable", hint=hint) from None
    if len(content) > MAX_BYTES:
        raise UsageError(
            f"the {role} {path} has more than {MAX_BYTES / 1e6:.0f} MB, the limit for source files",
            code="file_too_large",
            hint=hint,
        )
    try:
        return SourceFile(name=path.name, text=content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"the {role} {path} is not UTF-8 text: byte 0x{content[error.start]:02x} in line {line}",
            code="file_not_text",
            hint=hint,
        ) from None


def is_cuda(source: SourceFile) -> bool:
    """Whether a file is CUDA C++: by its ending, or, if that says nothing, by what it holds."""
    ending = Path(source.name).suffix.lower()
    if ending in (".cu", ".cuh", ".hip", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp"):
        return True
    if ending in (".py", ".pyi", ".ipynb"):
        return False
    return 'extern "C"' in source.text and ("__global__" in source.text or "#include" in source.text)
