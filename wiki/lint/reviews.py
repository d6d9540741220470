"""A page was reviewed within a year, and not tomorrow."""

from __future__ import annotations

from collections.abc import Iterator

from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, front_matter_line

MAX_AGE_DAYS = 365


@rule("review-date", "The review of a page is older than a year, or a date lies in the future.")
def review_date(view: WikiView) -> Iterator[Finding]:
    """Every stale page (a warning), and every page with a date that has not come yet."""
    for page in view.pages:
        age = (view.today - page.meta.reviewed).days
        line = front_matter_line(page, "reviewed")
        if age < 0:
            yield Finding(page.path, line, f"the review date {page.meta.reviewed} lies in the future")
        elif age > MAX_AGE_DAYS:
            yield Finding(page.path, line, f"the page was last reviewed {age} days ago", error=False)
        for source in page.meta.sources:
            if source.accessed > view.today:
                line = front_matter_line(page, "sources", source.id)
                yield Finding(page.path, line, f"{source.id} was accessed in the future, on {source.accessed}")
