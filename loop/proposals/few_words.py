"""Makes a proposal from few words: what only its author can say, with the rest filled in from the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Literal, get_args

from pydantic import ValidationError

from evaluator.receipt.document import first_of
from kbs.common.errors import UsageError
from kbs.evidence.checking import MIN_QUOTED_WORDS, plain_text
from kbs.evidence.citation import parse_reference
from kbs.evidence.vocabulary import words
from loop.proposals.change import compare
from loop.proposals.proposal import Ablation, Evidence, Expected, Hypothesis, Proposal, Query, Selected, Skipped

MAX_QUOTE = 600
"""Characters of a quotation that kopt chooses by itself."""
_EXPECTED = re.compile(r"\s*(?P<metric>\S+)\s+(?P<direction>up|down)\s*(?::\s*(?P<size>\S.*?)\s*)?", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z“\"(`])")
_ARROW = re.compile(r"<-+|←")
_RISK = "The new program may be wrong or slower; it is checked against the reference before it counts."
_KEEP_TIMED = "Kept if the lower bound of the ratio to the parent says that it is faster."
_KEEP_UNTIMED = "Kept if it is right, where the user accepts versions without times; this run takes none."
Direction = Literal["up", "down"]
Language = Literal["python", "cuda"]


@dataclass(frozen=True)
class Words:
    """What the author of a change says, as it was typed."""

    kernel: str
    """The whole text of the new file."""
    language: Language
    methods: tuple[str, ...]
    why: str
    change: str = ""
    evidence: tuple[str, ...] = ()
    """Each a reference, or `"words" <- reference`, or `metric: value unit <- reference`."""
    expect: tuple[str, ...] = ()
    """Each `metric up|down: how far`."""
    skip: tuple[str, ...] = ()
    """Each `method=reason`."""
    ask: tuple[str, ...] = ()
    """Further questions to the knowledge base."""
    circumstances: str = ""
    risk: str = ""
    keep_if: str = ""
    without: tuple[tuple[str, str], ...] = ()
    """(method, the whole text of the file without it), for each of several methods."""


@dataclass(frozen=True)
class Parent:
    """The version that is changed."""

    version: int
    kernel: str
    language: Language
    bottleneck: str
    """Empty if it was not profiled."""
    receipt: str
    """Id of its receipt; empty if it has none."""


Look = Callable[[str, str], tuple[str, str]]
"""(quotation, reference) → what the cited place says, and why it cannot be cited so; the latter is empty if it can."""


def compose(said: Words, version: int, parent: Parent, look: Look, *, timed: bool) -> Proposal:
    """The proposal for a version. UsageError `proposal_incomplete` with everything that is missing or cannot be read.

    Whether its methods may be used, and whether its numbers have sources, is for the gate to say. `timed`: whether the
    run takes times.
    """
    try:
        return _compose(said, version, parent, look, timed=timed)
    except ValidationError as error:
        where, what = first_of(error)
        raise incomplete([f"{where}: {what}"]) from error


def _compose(said: Words, version: int, parent: Parent, look: Look, *, timed: bool) -> Proposal:
    wrong: list[str] = []
    for name, given, fix in (
        ("--kernel", said.kernel.strip(), "the file with the whole new kernel; this one is empty"),
        ("--method", all(said.methods) and said.methods, "the one method that the change is, by its id"),
        ("--why", said.why.strip(), "in a sentence, why the change should help"),
    ):
        if not given:
            wrong.append(f"{name} is missing: {fix}")
    selected = tuple(_selected(said, parent, look, wrong))
    expected = tuple(_expected(text, wrong) for text in said.expect) or (_guess("time", "down"),)
    skipped = tuple(_skipped(text, wrong) for text in said.skip)
    wrong += [f"--ask “{text}” is too short for a question" for text in said.ask if len(text.strip()) < 3]
    if wrong:
        raise incomplete(wrong)
    return Proposal(
        version=version,
        parent=parent.version,
        kernel=said.kernel,
        language=said.language,
        methods=said.methods,
        skipped=skipped,
        hypothesis=Hypothesis(
            current_evidence=_current(parent),
            decision_link=said.why.strip(),  # the report tells it
            single_change=said.change.strip() or _change(said, parent),
            rationale=said.why.strip(),
            expected=expected,
            risk=said.risk.strip() or _RISK,
            decision_rule=said.keep_if.strip() or (_KEEP_TIMED if timed else _KEEP_UNTIMED),
        ),
        evidence=Evidence(
            # The first finds the method's own page, which may then be cited.
            queries=tuple(
                Query(about="other", text=text.strip())
                for text in (*(f"{name} method: when does it help" for name in said.methods), *said.ask)
            ),
            selected=selected,
        ),
        circumstances=said.circumstances.strip(),
        ablations=tuple(Ablation(method=method, kernel=text) for method, text in said.without),
    )


def incomplete(wrong: Sequence[str]) -> UsageError:
    """The error for a proposal that cannot be made, with every reason."""
    return UsageError(
        "\n".join(wrong),
        code="proposal_incomplete",
        hint="`kopt run next` shows methods, references and a whole command; --show checks one without handing it in.",
    )


def _current(parent: Parent) -> str:
    known = parent.bottleneck and parent.bottleneck != "unknown"
    found = f"is diagnosed as {parent.bottleneck}" if known else "has no diagnosis that names what bounds it"
    return f"v{parent.version} is accepted, and {found}."


def _change(said: Words, parent: Parent) -> str:
    """The change in words: the methods, and the functions that differ."""
    found = compare(parent.kernel, said.kernel, said.language, parent.language)
    places = [part for part in found.parts if part.startswith(("function ", "class "))]
    return ", ".join(said.methods) + (f" in {', '.join(places[:4])}" if places else "")


# --- evidence -----------------------------------------------------------------------------------------------------


def _selected(said: Words, parent: Parent, look: Look, wrong: list[str]) -> Iterator[Selected]:
    """What the change rests on; the receipt of its parent where nothing else is named."""
    given = said.evidence
    if not given:
        if not parent.receipt:
            wrong.append(f"--evidence is missing, and v{parent.version} has no receipt to cite: take a reference")
            return
        given = (f"receipt/{parent.receipt}#reason",)
    for text in given:
        *left, right = _ARROW.split(text)
        reference, quote = right.strip(), "<-".join(left).strip()
        if parse_reference(reference) is None:
            wrong.append(
                f"--evidence “{text[:200]}” has no reference that can be read: wiki/path:L12-L14, receipt/ID#FIELD,"
                ' profile/HASH#METRIC or log/ID, alone or after "words" <-'
            )
            continue
        if quote:
            says, problem = look(quote, reference)
            problem += f". It says: {shorten(says, 300)}" if problem and says else ""
        else:
            quote, problem = quotation(reference, f"{said.why} {' '.join(said.methods)}", look)
        if problem:
            wrong.append(f"--evidence {reference}: {problem}")
        elif quote:
            yield Selected(reference=reference, quote=_plainly(quote), why="The change rests on it.")


def quotation(reference: str, about: str, look: Look) -> tuple[str, str]:
    """(the sentence of the cited place that has most to do with `about`, why there is none)."""
    says, problem = look("", reference)
    if problem:
        return "", problem
    if not parse_reference(reference) or reference.startswith(("receipt/", "profile/")):
        return _marked(says[:MAX_QUOTE]), ""
    wanted = set(words(about.replace("_", " ")))
    found = list(dict.fromkeys(_sentences(says)))
    # Among equals the first: a sentence that reads as a figure with its name would be taken for a spec.
    found.sort(key=lambda one: (_figure(one), -len(wanted & set(words(one)))))
    for one in found:
        if not look(_marked(one), reference)[1]:
            return _marked(one), ""
    return "", 'no sentence there can be quoted as it stands: name the words, as in "words" <- reference'


def _sentences(markdown: str) -> Iterator[str]:
    """Sentences, list items and rows as a reader sees them, without code blocks."""
    text = re.sub(r"(?ms)^\s*(```|~~~).*?^\s*\1[^\n]*$", "\n", markdown)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+|#>]|\d+[.)]\s))|(?<=\|)\n", text):
        for sentence in _SENTENCE.split(plain_text(block)):
            one = sentence.strip().strip('"“”')
            if len(words(one)) >= MIN_QUOTED_WORDS and len(one) <= MAX_QUOTE and not _ARROW.search(one):
                yield one


def _figure(text: str) -> bool:
    """Whether words without quotation marks would be read as a spec: `name: value`."""
    return ": " in text and any(c.isdigit() for c in text.rsplit(": ", 1)[-1])


def _marked(text: str) -> str:
    return f'"{text}"' if _figure(text) else text


def _plainly(quote: str) -> str:
    """A quotation without its marks, which are needed only where it would be read as a spec."""
    bare = quote.strip().strip('"“”')
    return quote if _figure(bare) else bare


# --- the other words ----------------------------------------------------------------------------------------------


def _expected(text: str, wrong: list[str]) -> Expected:
    match = _EXPECTED.fullmatch(text)
    if match is None:
        wrong.append(f"--expect “{text}” cannot be read: write METRIC up|down: HOW FAR, as in “time down: a little”")
        return _guess("time", "down")
    direction = match["direction"].lower()
    assert direction in get_args(Direction)
    return _guess(match["metric"], "up" if direction == "up" else "down", match["size"] or "")


def _guess(metric: str, direction: Direction, size: str = "") -> Expected:
    return Expected(metric=metric[:120], direction=direction, size=size[:200] or "not known beforehand")


def _skipped(text: str, wrong: list[str]) -> Skipped:
    method, equals, reason = (part.strip() for part in text.partition("="))
    if not (method and equals and reason):
        wrong.append(f"--skip “{text}” cannot be read: write METHOD=REASON")
        return Skipped(method=method[:80] or "?", reason="?")
    return Skipped(method=method, reason=reason)
