"""A name leads to one page, and a product has one page."""

from __future__ import annotations

from collections.abc import Iterator

from kbs.evidence.vocabulary import words
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, front_matter_line
from wiki.page import Page


@rule("duplicate", "Two pages have one title, alias or product, or an alias names another product.")
def duplicate(view: WikiView) -> Iterator[Finding]:
    """Every title, alias and product that leads to more than one page."""
    named: dict[tuple[str, ...], Page] = {}
    described: dict[str, Page] = {}
    for page in view.pages:
        for key, name in (("title", page.meta.title), *(("aliases", alias) for alias in page.meta.aliases)):
            line = front_matter_line(page, key, name)
            first = named.setdefault(tuple(words(name)), page)
            if first is not page:
                yield Finding(page.path, line, f"{name!r} is a name of {first.path} too")
            others = [id for id in view.vocabulary.resolve("product", name) if id != page.product]
            if key == "aliases" and others:
                yield Finding(page.path, line, f"the alias {name!r} is a name of the product {', '.join(others)}")
        if page.product:
            first = described.setdefault(page.product, page)
            if first is not page:
                line = front_matter_line(page, "product" if page.meta.product else "id")
                yield Finding(page.path, line, f"the product {page.product} is described by {first.path} too")
