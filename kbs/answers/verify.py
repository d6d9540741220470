"""Checks every claim of an answer against the lines it cites, as they are now."""

from __future__ import annotations

import re

from kbs.answers.model import OWN, Answer, Claim, ClaimKind, Section
from kbs.answers.user_kernel import why_not_user_kernel
from kbs.evidence.arithmetic import equation_holds
from kbs.evidence.checking import Library, Status, check_citation, check_text, plain_text, stands_in
from kbs.evidence.file_evidence import EvidenceCheck, NoEvidence
from kbs.evidence.vocabulary import Vocabulary


def verify(answer: Answer, library: Library, vocabulary: Vocabulary, evidence: EvidenceCheck | None = None) -> None:
    """Drop every claim that does not stand up, and count it. An answer whose direct claim fell abstains.

    `evidence` are the user's own files, where the answer speaks of them.
    """
    files = evidence or NoEvidence()
    fell = ""
    kept: list[Section] = []
    for position, section in enumerate(answer.sections):
        sound: list[Claim] = []
        for claim in section.claims:
            reason = why_unsound(claim, library, vocabulary, files, answer.question)
            if not reason:
                sound.append(claim)
                continue
            answer.dropped += 1
            answer.warnings.append(f"left out, because {reason}: {claim.text}")
            if position == 0 and claim is section.claims[0]:
                fell = reason
        if sound:
            kept.append(Section(section.title, tuple(sound)))
    answer.sections = kept
    if fell and not answer.abstained:
        answer.abstained = True
        answer.reason = "unverified"
        answer.sections = []
        answer.gaps.append(
            f"The answer failed its check: {fell}. If a page has changed, ask again after `kopt ingest`;"
            " otherwise it is a fault of kopt: please report it."
        )


def why_unsound(
    claim: Claim, library: Library, vocabulary: Vocabulary, evidence: EvidenceCheck, asked: str = ""
) -> str:
    """Why a claim must not be said; "" where it may. `asked`: the question, whose numbers may be reckoned with."""
    for citation in claim.citations:
        checked = check_citation(citation, library)
        if checked.status is not Status.OK:
            return f"{checked.reference} is {checked.status}: {checked.detail}"
    if claim.kind is ClaimKind.ABSENCE:
        return ""
    if claim.kind in OWN:
        return why_not_user_kernel(claim, evidence) or _unbacked_numbers(claim, vocabulary)
    if claim.kind is ClaimKind.EXPERIENCE:
        return _why_not_recorded(claim, evidence) or _unbacked_numbers(claim, vocabulary)
    if claim.kind is ClaimKind.GIVEN:
        return _why_not_given(claim, asked) or _wrong_step(claim) or _unbacked_numbers(claim, vocabulary)
    if not claim.citations:
        return "it cites nothing"
    if claim.kind is ClaimKind.SPEC:
        line = f"{claim.text} <- {claim.citations[0].reference}"
        [checked] = check_text(line, library, vocabulary)
        return "" if checked.status is Status.OK else checked.detail
    quotes = "\n".join(citation.quote for citation in claim.citations)
    if claim.kind is ClaimKind.STATEMENT:
        return "" if stands_in(claim.text, quotes) else "the cited lines do not say it"
    if claim.kind is ClaimKind.RECORD:
        # A value and its unit are in neighbouring cells.
        cells = plain_text(quotes).replace(" | ", " ")
        missing = [part for part in record_parts(claim.text) if not stands_in(part, cells)]
        return f"the cited row has no “{missing[0]}”" if missing else ""
    return _wrong_step(claim) or _unbacked_numbers(claim, vocabulary)


def _wrong_step(claim: Claim) -> str:
    wrong = [step.shown for step in claim.derivation if "=" in step.shown and equation_holds(step.shown) is not True]
    return f"the arithmetic is wrong: {wrong[0]}" if wrong else ""


_ELEMENT = re.compile(r"(?<![\w.])[1248] B\b")
"""The bytes of an element."""


def _why_not_given(claim: Claim, asked: str) -> str:
    """Why arithmetic on numbers of the question is none; "" where it is."""
    if not claim.derivation:
        return "it shows no arithmetic"
    stated = {text.replace(",", "") for text in _FIGURE.findall(asked)}
    stated |= {str(int(text) * 1024) for text in re.findall(r"(?<![\w.])(\d+)[kK]\b", asked)}
    for step in claim.derivation:
        missing = [one for one in _FIGURE.findall(_ELEMENT.sub("", step.expression)) if one not in stated]
        if missing:
            return f"the question does not give {missing[0]}"
    return ""


def _why_not_recorded(claim: Claim, evidence: EvidenceCheck) -> str:
    """Why the experience log does not say it; "" where it does. At least one record is cited, and quotes are whole."""
    if not any(item.kind == "log" for item in claim.evidence):
        return "it cites no record"
    for item in claim.evidence:
        why = evidence.why_not(item)
        if not why and not item.name and item.states not in claim.text:
            why = f"{item.reference} has other words"
        if why:
            return why
    return ""


def record_parts(text: str) -> list[str]:
    """What a row must contain for a record claim: what stands after the name, cut at the dots between cells."""
    _, _, said = text.partition(": ")
    return [part for part in said.split(" · ") if part]


_FIGURE = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


def _unbacked_numbers(claim: Claim, vocabulary: Vocabulary) -> str:
    """A number in a derived sentence that neither its steps nor its cited lines have; those of names do not count."""
    text = claim.text
    names = [one.name for one in (*vocabulary.products.values(), *vocabulary.families.values())]
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "", text) if name in text else text
    own = [text for item in claim.evidence for text in (item.name, *item.texts)]
    steps = [step.shown for step in claim.derivation]
    backing = " ".join([*steps, *own, *(citation.quote for citation in claim.citations)]).replace(",", "")
    for figure in _FIGURE.findall(text):
        plain = figure.replace(",", "")
        if not re.search(rf"(?<![\d.]){re.escape(plain)}(?![\d]|\.\d)", backing):
            return f"{figure} stands neither in its arithmetic nor in its cited lines"
    return ""
