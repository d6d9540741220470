"""Pictures of a wiki that are fit to be published."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from kopt.services.publishing.addresses import PICTURES
from wiki.library import Wiki

MAX_BYTES = 5_000_000
_BEGINNINGS = {".png": b"\x89PNG", ".jpg": b"\xff\xd8", ".jpeg": b"\xff\xd8", ".gif": b"GIF8", ".webp": b"RIFF"}
_SVG = "{http://www.w3.org/2000/svg}"
_SHAPES = "svg g defs path rect circle ellipse line polyline polygon text tspan marker clipPath title desc style"
_DRAWN = frozenset([*_SHAPES.split(), "linearGradient", "radialGradient", "stop"])
_ACTIVE = re.compile(r"url\s*\((?!\s*['\"]?#)|@import|expression|javascript:|\\", re.IGNORECASE)
"""In a style or an attribute: what fetches or runs something. An escape could spell any of it."""


def read_picture(wiki: Wiki, path: str) -> bytes | str:
    """The bytes of a picture, or why it is left out."""
    suffix = path[path.rfind(".") :].lower()
    if suffix not in PICTURES:
        return f"no picture: its name ends with none of {', '.join(PICTURES)}"
    try:
        file = wiki.place(path).resolve()
        if not file.is_relative_to(wiki.root.resolve()) or not file.is_file():
            return "there is no such file in the wiki"
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a link that leads to itself
        return "it cannot be read"
    if len(data) > MAX_BYTES:
        return f"it has more than {MAX_BYTES:,} bytes"
    if suffix == ".svg":
        return data if harmless_svg(data) else "an SVG with more than shapes, text and styles"
    return data if data.startswith(_BEGINNINGS[suffix]) else f"it is not what {suffix} says"


def harmless_svg(data: bytes) -> bool:
    """Whether an SVG draws and does nothing else. As a picture it could run nothing; opened by itself it could."""
    head = re.sub(rb"\A(?:\xef\xbb\xbf)?\s*<\?xml [^?]*\?>", b"", data)
    if b"<!" in re.sub(rb"<!--.*?-->", b"", head, flags=re.DOTALL) or b"<?" in head:  # entities, other style sheets
        return False
    try:
        elements = list(ElementTree.fromstring(data).iter())
    except (ElementTree.ParseError, ValueError, LookupError):
        return False
    for one in elements:
        if not isinstance(one.tag, str) or one.tag.removeprefix(_SVG) not in _DRAWN or not one.tag.startswith(_SVG):
            return False
        if any(name.lower().startswith("on") or "href" in name.lower() for name in one.attrib):
            return False
        if any(_ACTIVE.search(said) for said in (*one.attrib.values(), one.text or "" if "style" in one.tag else "")):
            return False
    return True


def svg_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels as its first element states them, so that a page keeps the room free."""
    found = re.search(rb'<svg\b[^>]*?\swidth="(\d{1,4})"\s+height="(\d{1,4})"', data[:1000])
    return (int(found[1]), int(found[2])) if found else None
