"""Claims that state no number although only a measurement could show them: of other programs, and of the profile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from evaluator.profiling.profile import Launch
from kbs.evidence.checking import plain_text
from kbs.evidence.quantities import normal
from loop.gate.numbers.figures import pieces
from loop.gate.numbers.plain_text import plain
from loop.gate.numbers.scope import OTHER_PROGRAM
from loop.gate.numbers.wording import MODAL

_BEST = re.compile(
    r"\bthe (?:\w+ )?(?:fastest|quickest|best|most efficient|leading|unbeat\w+|unmatched"
    r"|unrivalled)(?=[^.;]{0,60}\b(?:exist\w*|ever|known|anywhere"
    r"|in the world|on the market|there is|published|to date|possible|of (?:all|any|them all))\b)"
    r"|\b(?:is|are|becomes|be|makes (?:it|this)) (?:now |then |by far |thus )?the (?:fastest|quickest"
    r"|best)\b(?! (?:candidate|branch|of the))"
    r"|\bstate[- ]of[- ]the[- ]art\b|\brecord[- ]breaking\b|\bworld[- ]class\b|\bunbeat\w+|\bno (?:other )?\w+"
    r" is (?:any )?faster\b",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\b(?:ahead of|faster than|quicker than|slower than|better than|beats?|beating|outperforms?|outperforming"
    r"|outruns?|surpass\w*"
    r"|overtak\w+|exceeds?|on par with|level with|as (?:fast|quick|good) as|matches|rivals?|behind|keeps? up"
    r" with|loses? to"
    r"|leaves?(?= [\w. ]{1,30} behind))\b",
    re.IGNORECASE,
)
_SHARE = re.compile(
    r"\b(?:most|the (?:bulk|majority|lion's share|greater part|better part|largest (?:part|share))|nearly all"
    r"|almost all"
    r"|practically all|the whole)\s+(?:of\s+)?(?:the\s+|its\s+|all\s+|this\s+|that\s+)?(?:\w+\s+){0,2}?(?:time"
    r"|runtime|duration|cycles"
    r"|stalls|latency|bandwidth|issue slots)\b|\bdominat\w+\b(?=[^.;]{0,40}\b(?:time|runtime|duration|cycles"
    r"|profile)\b)",
    re.IGNORECASE,
)
_ASKED = re.compile(r"[“\"][^”\"]*\?[”\"]")
"""A question in quotation marks, as headings of pages are: it claims nothing."""
_CLAUSES = re.compile(r",\s+(?=(?:and|but|so|while|whereas|which|yet)\b)|(?<=[;:])\s")
_QUICK = (
    r"(?:fast|quick|speedi)er\b|gain(?:s\b(?! nothing)|ed\b)|beat(?:s|en)?\b|outperform\w*|outr[au]n\w*|overt[ao]\w+"
    r"|sped up|speeds? up|(?:keeps?|kept) (?:up|pace) with"
    r"|(?:took|takes?|cuts?|shav\w+|knock\w+|sav(?:es?|ed)) (?:[\w/-]+ ){1,6}?off\b"
    r"|(?:comes?|came|gets?|got|goes|went|is|was) (?:nearer|closer) to (?=[^.;]{0,40}\b(?:peak|limit|roof\w*|ceiling"
    r"|floor|can do|could do|possible|best|optim\w+)\b)"
)
_SLOW = r"slower\b|los(?:es|t|ing) to\b|(?:lags?|falls?|fell) behind|(?:fastest|quickest|slowest)\b|the lead grows"
_SPEED = re.compile(
    rf"(?<!\bno )\b(?:(?P<quick>{_QUICK})|{_SLOW}|(?:took|takes|needed|needs) [^.;,]{{0,40}}\bof what\b)",
    re.IGNORECASE,
)
"""A comparison of speeds."""
_IDLE = r"(?:wait\w*|idl\w+|stall\w*)"
_LIMITS = re.compile(
    r"\b(?:is|are|was|were|stays?|remains?)\s+(?:\w+\s+){0,2}?(?:(?:bound|limited|throttled|dominated|starved|choked"
    r"|held (?:up|back))\s+(?:by|for|on)\b"
    r"|(?:\w+-)?(?:memory|compute|latency|bandwidth|issue|launch|occupancy)-bound\b)"
    rf"|\bspen[dt]s?\b[^.;]{{0,60}}?\b{_IDLE}|\bspent\b[^.;]{{0,20}}\b(?:part|half|bulk|share)\b"
    rf"|\bfor the (?:greater|better|larger|most) part\b[^.;]{{0,20}}\b{_IDLE}"
    r"|\bbottleneck (?:is|lies|sits|was)\b|\b(?:is|are) (?:the|its|our) bottleneck\b"
    r"|\bis what (?:costs|limits|binds|bounds)\b"
    r"|\bstalls?\b[^.;]{0,30}\b(?:ahead of|first|lead|leads|dominate\w*|largest|most)\b",
    re.IGNORECASE,
)
"""What limits a kernel, or where its time goes."""
_FIGURE = re.compile(r"\d[\d.,]*\s?(?:%|[x×](?!\w)|times\b|-?fold|[mnuµ]?s\b|[kMGT]i?B|cycles?\b|inst\b)|\d\.\d|\d/\d")
_OTHERS = re.compile(
    rf"{OTHER_PROGRAM.pattern}|\b(?i:tutorials?|hand-?(?:written|tuned)|published|public|upstream|vendors?|textbook"
    r"|(?:this|that|the|our|my|his|her|their) (?:card|gpu|chip)|(?:every|any)(?:body|one) else)\b"
)
_VERSIONS = re.compile(r"\bv(\d{1,4})\b")
_SAYS = re.compile(
    r"\b(?:profiles?|profiler|ncu|nsight(?: compute)?|counters?|measurements?"
    r"|receipts?)\b[^.;,]{0,24}?\b(?:shows?|says?|reports?|tells?"
    r"|reveals?|proves?|confirms?|has|have|records?|indicates?|counts?)\b",
    re.IGNORECASE,
)
_PROFILE_SAYS = re.compile(
    r"\b(?:profiles?|profiler|ncu|nsight(?: compute)?|counters?)\b[^.;,]{0,24}?"
    r"(?<!to )\b(?:shows?|says?|reports?|tells?|reveals?|proves?|confirms?|has|have|records?|indicates?|counts?)\b",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:not?|never|without|none|nothing|avoids?|prevents?|free of|zero|cannot|fewer|less|against|before"
    r"|until|neither|nor"
    r"|instead|rather|risk|danger|no longer)\b|n['’]t\b|\b0\b",
    re.IGNORECASE,
)
_COUNTED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"\bspill(?:s|ed|ing)?\b|\blocal memory\b",
     ("local_loads", "local_stores", "local_load_sectors", "local_store_sectors")),
    (r"\bbank conflicts?\b", ("bank_conflicts", "bank_conflicts_loads", "bank_conflicts_stores")),
    (r"\batomics?\b", ("atomic_sectors", "reduction_sectors", "reduction_instructions")),
    (r"\bbarriers?\b(?=[^.;]{0,30}\bstall)|\bstall\w*\b(?=[^.;]{0,20}\bbarriers?\b)",
     ("stall_barrier", "stall_membar")),
)  # fmt: skip
"""What a text may say that there is → metrics of which one is above zero if so."""


@dataclass(frozen=True)
class Shown:
    """What a proposal may lean on without stating a figure."""

    launches: Sequence[Launch]
    """The parent's profile."""
    quoted: str
    """What the selected evidence quotes."""
    measured: bool
    """Whether the proposal states a measured share or time."""
    timed: Set[int] = frozenset()
    """Versions that have a time in the journal."""
    kept: Set[int] = frozenset()
    """Versions that were kept."""


def bare_claims(text: str, shown: Shown) -> Iterator[tuple[int, str, str]]:
    """(line, what is claimed, what is wrong) of each claim in a text that no figure shows."""
    before = ""
    for number, line in enumerate(normal(plain(text)).split("\n"), start=1):
        for said in pieces(line):
            why = _why_bare(said, shown.launches, shown.quoted, measured=shown.measured)
            if why := why or _why_unmeasured(said, before, shown):
                yield number, said.strip()[:160], why
            before = said


def _why_unmeasured(said: str, before: str, shown: Shown) -> str:
    """Why a comparison of speeds, or what is said to limit a kernel, rests on nothing. What may come is free."""
    if said.rstrip().endswith("?"):
        return ""
    for clause in _CLAUSES.split(_ASKED.sub("", said)):
        speed, limits = _SPEED.search(clause), _LIMITS.search(clause)
        found = speed or limits
        if found is None or _foretold(clause, found.end()) or _FIGURE.search(clause):
            continue
        if plain_text(found[0]).casefold() in plain_text(shown.quoted).casefold():
            continue
        if speed is None:
            if not shown.launches and not _NOT.search(clause):
                return f"“{found[0]}” says what limits a kernel, and its parent has no profile"
            continue
        named = [
            int(number) for number in _VERSIONS.findall(clause) or _VERSIONS.findall(said) or _VERSIONS.findall(before)
        ]
        untimed = [number for number in named if number not in shown.timed]
        if untimed:
            return f"“{found[0]}” compares speeds, and the journal has no time of v{untimed[0]}"
        own = set(_VERSIONS.findall(clause))
        if speed["quick"] and len(own) == 1 and (one := int(own.pop())) not in shown.kept:
            return f"“{found[0]}” is said of v{one}, which was not kept"
        if (other := _OTHERS.search(clause)) is not None:
            return f"“{found[0]}” compares with {other[0]} and states no figure"
        if not shown.timed and not shown.launches:
            return f"“{found[0]}” compares speeds, and nothing was timed"
    return ""


def _why_bare(said: str, launches: Sequence[Launch], quoted: str, *, measured: bool) -> str:
    if said.rstrip().endswith("?"):
        return ""
    if best := _BEST.search(said):
        return "" if best[0].lower() in quoted.lower() else f"“{best[0]}” is a comparison with all others"
    compared = _COMPARES.search(said)
    other = OTHER_PROGRAM.search(said, compared.start()) if compared else None
    if compared and other and not _foretold(said, compared.start()) and not any(one.isdigit() for one in said):
        return "" if other[0] in quoted else f"it compares with {other[0]} and states no figure"
    foretold = _foretold(said, len(said))
    for words, metrics in _COUNTED:
        match = re.search(words, said, re.IGNORECASE)
        if match is None or foretold or _NOT.search(said):
            continue
        counters = [
            c for one in launches for id in metrics if (c := one.metric(id)) is not None and c.value is not None
        ]
        if counters and all(counter.value == 0 for counter in counters):
            return f"the profile counts no {match[0]}"
        if not counters and _SAYS.search(said):
            return f"the profile has no count of {match[0]}" if launches else "there is no profile"
    if not launches and not foretold and _PROFILE_SAYS.search(said) and not _NOT.search(said):
        return "there is no profile"
    share = _SHARE.search(said)
    if share and not measured and not foretold and share[0].lower() not in quoted.lower():
        return f"“{share[0]}” is a share that only a measurement shows"
    return ""


def _foretold(said: str, end: int) -> bool:
    return bool(MODAL.search(said[:end])) or bool(
        re.search(r"\b(?:expect\w*|hope\w*|aims?|goal|target|will)\b", said[:end], re.I)
    )


_NEGATES = re.compile(
    r"\b(?:not?|nothing|nobody|nowhere|never|neither|nor|none|cannot|unless|hardly|rarely|seldom"
    r"|only (?:if|when|where)|fails? to|wrong(?:ly)?|myth|false)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_NEAR = 80
"""Characters before a quotation in which a word may turn it round."""
_BEGINS = re.compile(r"[.;:!?|](?=\s|$)|,\s+(?=(?:and|but|so|which|while|whereas|because|where|since|as|if)\b)")
_ENDS = re.compile(r"[.;:!?|](?=\s|$)|,\s+(?:and|so|which|where)\b|,?\s+(?:because|since|although|though)\b")


def cut_away(quote: str, lines: str) -> str:
    """The word of the quoted clause that would turn what is quoted round, and was left out; empty for none."""
    wanted, text = (plain_text(one) for one in (quote.strip(' “”"'), lines))
    wanted = wanted.strip(" .,;:")
    at = text.casefold().find(wanted.casefold()) if wanted else -1
    if at < 0:
        return ""
    begins = [match.end() for match in _BEGINS.finditer(text) if match.end() <= at]
    ends = _ENDS.search(text, at + len(wanted))
    before = text[max(begins[-1] if begins else 0, at - _NEAR) : at]
    after = text[at + len(wanted) : ends.start() if ends else len(text)]
    found = _NEGATES.search(before) or _NEGATES.search(after)
    return found[0] if found else ""
