"""Names in the front matter are ids of the vocabulary, and a hardware page names its vendor."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from wiki.lint.reading import SUMMARIES
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, front_matter_line


@rule("vocabulary", "A name is no id of the vocabulary.")
def vocabulary_ids(view: WikiView) -> Iterator[Finding]:
    """Every id that the front matter uses and the vocabulary does not know."""
    terms = view.vocabulary
    for page in view.pages:
        meta = page.meta
        keys: tuple[tuple[str, tuple[str, ...], Collection[str]], ...] = (
            ("vendor", (meta.vendor,) if meta.vendor else (), terms.vendors),
            ("architectures", meta.architectures, terms.architectures),
            ("languages", meta.languages, terms.languages),
            ("operations", meta.operations, terms.operations),
            ("bottlenecks", meta.bottlenecks, terms.bottlenecks),
            ("symptoms", meta.symptoms, terms.symptoms),
            ("techniques", meta.techniques, terms.techniques),
            ("tags", meta.tags, terms.tags),
            ("features", meta.features, terms.features),
            ("triggers", meta.triggers, terms.symptoms),
        )
        for key, ids, known in keys:
            for id in ids:
                if id not in known:
                    line = front_matter_line(page, key, id)
                    yield Finding(page.path, line, f"{key}: {id!r} is not in the vocabulary")


@rule("front-matter", SUMMARIES["front-matter"])
def vendor_of_hardware(view: WikiView) -> Iterator[Finding]:
    """Every hardware page without a vendor."""
    for page in view.pages:
        if page.meta.kind == "hardware" and not page.meta.vendor:
            yield Finding(page.path, front_matter_line(page, "kind"), "a hardware page must name its vendor")
