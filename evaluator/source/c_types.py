"""Map the C types of kernel parameters to ctypes and torch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ElementType:
    """What a C type is in ctypes and in torch."""

    ctypes: str
    """Name of the ctypes type that passes it by value; "" where kopt does not pass it by value."""
    torch: str
    """Name of the torch dtype of a buffer of it; "" where that cannot be told from the type."""


# LP64, which is what CUDA has on Linux. Half types go by value as the 16 bits that they are.
ELEMENT_TYPES: dict[str, ElementType] = {
    "bool": ElementType("c_bool", "bool"),
    "char": ElementType("c_byte", "int8"),
    "signed char": ElementType("c_byte", "int8"),
    "unsigned char": ElementType("c_ubyte", "uint8"),
    "short": ElementType("c_short", "int16"),
    "unsigned short": ElementType("c_ushort", "uint16"),
    "int": ElementType("c_int", "int32"),
    "unsigned int": ElementType("c_uint", "uint32"),
    "long": ElementType("c_long", "int64"),
    "unsigned long": ElementType("c_ulong", "uint64"),
    "float": ElementType("c_float", "float32"),
    "double": ElementType("c_double", "float64"),
    "half": ElementType("c_uint16", "float16"),
    "bfloat16": ElementType("c_uint16", "bfloat16"),
    "float8_e4m3": ElementType("c_uint8", "float8_e4m3fn"),
    "float8_e5m2": ElementType("c_uint8", "float8_e5m2"),
    "complex float": ElementType("", "complex64"),
    "complex double": ElementType("", "complex128"),
    "void": ElementType("", ""),
    "cudaStream_t": ElementType("c_void_p", ""),
}
"""Types that a parameter of `solve` can have, by the name in Parameter.type."""

_SPELLINGS = {
    spelling: name
    for name, spellings in {
        "signed char": "int8_t",
        "unsigned char": "uint8_t uchar",
        "short": "int16_t",
        "unsigned short": "uint16_t ushort",
        "int": "int32_t",
        "unsigned int": "uint32_t uint",
        "long": "int64_t ssize_t ptrdiff_t intptr_t __int64",
        "unsigned long": "uint64_t size_t uintptr_t ulong",
        "half": "__half Half half_t __half2 half2 float16_t",
        "bfloat16": "__nv_bfloat16 nv_bfloat16 __nv_bfloat162 nv_bfloat162 BFloat16 bfloat16_t",
        "float8_e4m3": "__nv_fp8_e4m3",
        "float8_e5m2": "__nv_fp8_e5m2",
        "complex float": "cuComplex cuFloatComplex",
        "complex double": "cuDoubleComplex",
    }.items()
    for spelling in spellings.split()
}
"""Names in ELEMENT_TYPES by other names of the same type."""
_PAIRS = {"half2", "__half2", "__nv_bfloat162", "nv_bfloat162"}
_VECTOR = re.compile(r"(u?(?:char|short|int|long|longlong)|float|double)[1-4]")
INTEGER_WORDS = {"unsigned", "signed", "long", "short", "int", "char"}
"""Words that an integer type is put together from."""
QUALIFIERS = {
    *("__restrict__", "__restrict", "restrict", "volatile", "register", "struct", "typename", "std", "c10", "at"),
    *("__grid_constant__", "cutlass", "cuda", "constexpr"),
}
"""Words of a parameter that do not change what is passed."""


def element_type(written: str, aliases: Mapping[str, str] | None = None) -> str:
    """The name in ELEMENT_TYPES of a C type as it is written: `unsigned` → `unsigned int`, `float4` → `float`.

    A vector type has the element type of its lanes, `float2` too. A type that kopt does not know comes back as it is.
    """
    words = _resolved(written, aliases or {})
    if words and set(words) <= INTEGER_WORDS:
        unsigned = "unsigned " if "unsigned" in words else ""
        if "char" in words:
            return ("signed " if "signed" in words else unsigned) + "char"
        return unsigned + ("short" if "short" in words else "long" if "long" in words else "int")
    name = " ".join(words)
    vector = _VECTOR.fullmatch(name)
    if vector:
        lane = vector.group(1).replace("longlong", "long")
        return f"unsigned {lane[1:]}" if lane.startswith("u") else lane
    return _SPELLINGS.get(name, name)


def is_vector(written: str, aliases: Mapping[str, str]) -> bool:
    """Whether a C type holds several elements, as `float4` and `half2` do."""
    name = " ".join(_resolved(written, aliases))
    return _VECTOR.fullmatch(name) is not None or name in _PAIRS


def _resolved(written: str, aliases: Mapping[str, str]) -> list[str]:
    seen, words = set[str](), _plain(written)
    while len(words) == 1 and words[0] in aliases and words[0] not in seen and len(seen) < 20:
        seen.add(words[0])
        words = _plain(aliases[words[0]])
    return words


def _plain(written: str) -> list[str]:
    return [word for word in written.replace("::", " ").split() if word not in QUALIFIERS and word != "const"]
