"""What came of an experiment, by all that a record says: whether it is right, whether it was kept, and its times.

What says that a result is wrong goes before all else; a ratio that contradicts the rest is left out, and told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from math import inf, isfinite, log10
from typing import Any

from kbs.common.visible_text import visible
from kbs.evidence.quantities import find_quantities, normal
from kbs.experience.experiment import Outcome, Speedup
from kbs.experience.transfer.fields import MEASURES, RATE, Field, says

BAND = 0.01
"""A ratio that is no farther from 1 says that nothing changed."""
_AGREES = 0.03
"""A stated ratio and that of the times may differ by this part."""
_SHORT = 80
_LONG = 4000
_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{0,20})?"
_TIMES = re.compile(rf"(?<![\w.])(?<!\d[-–])({_NUMBER})\s*[x×](?![\w])\s*(slower)?", re.IGNORECASE)
_PERCENT = re.compile(rf"([+-]?)\s*({_NUMBER})\s*%\s*(faster|slower|worse|better)?", re.IGNORECASE)
_SIGNS = {"✓": True, "✔": True, "✅": True, "✗": False, "✘": False, "❌": False}
_GAINED = re.compile(rf"[:(,;]\s*([+-])({_NUMBER})\s*%()\s*\)?\s*$")
_AS_IS = re.compile(r"relative|ratio|of_baseline")
_RATES = r"[a-z]{1,8}/s(?:ec)?|[kmgtp]?flops?(?:/s)?"
_MEASURED = rf"({_NUMBER})\s*([µμun]?m?s|{_RATES})"
_PAIR = re.compile(
    rf"{_MEASURED}?(?:/\w+)?(?:\s*(->|→|=>|\bto\b)\s*|(?:\s+[a-z]\w*){{0,2}}\s+(vs\.?|versus)(?:\s+[\w']+){{0,2}}?\s+)"
    rf"{_MEASURED}\b",
    re.IGNORECASE,
)
_SIGNED = re.compile(rf"(?<![\w.])([+-])({_NUMBER})(?:[-/+–]+{_NUMBER})?\s*%")
_OTHER = re.compile(
    r"regist|occupan|memory|vram|accura|error|power|utili|traffic|miss|stall|size|bytes|compil|spill", re.IGNORECASE
)
"""What a per cent may be of, and no speed."""
_TIMED = re.compile(r"(?<!compile )(?<!build )(?<!tuning )\b(?:latency|time|duration|cycles)\b", re.IGNORECASE)
_ASIDE = re.compile(r"([^(;]{1,60}?)\s*\((.*)")
"""A verdict, and in brackets what it rests on."""


@dataclass(frozen=True)
class Result:
    """What came of it."""

    outcome: Outcome
    speedup: Speedup | None = None
    notes: tuple[str, ...] = ()
    kept: bool = False
    """What follows is compared with it."""
    elsewhere: bool = False
    """The stated ratio is not to what was changed: its own figures contradict it, or a baseline has another than 1."""
    unkept: bool = False
    """It was taken back: where such rows are marked, the others were kept."""


def _verdict(value: Any, key: str = "") -> set[str]:
    """What a text that is to say how it went says. A tick says that it passed, and a status of success that it ran."""
    if isinstance(value, bool) or value in (0, 1):
        return {"passed" if value else "fail"}
    if isinstance(value, list):
        words = set[str]().union(*(_verdict(one) for one in value if isinstance(one, str)))
        return {"failed"} if any(map(_no_time, _leaves(value))) else words
    text = _plain(str(value))
    found = says(_clause(text)) | _trend(text)
    found |= says(text) & {"failed", "incorrect", "rejected", *(["slower"] if "unkept" in found else [])}
    found -= {"judged"}
    if text.strip().lower() == "rejected":
        return {"rejected"}
    passed = re.search(r"(?<![\w./])(\d{1,9}) ?/ ?(\d{1,9})(?![\w./])", text)
    if passed and re.fullmatch(r"\(?[\d /]+(?: passed)?\)?", text.strip()):
        return {"passed" if passed[1] == passed[2] else "fail"}
    if passed and "fail" in found and int(passed[1]) < int(passed[2]):
        found |= {"incorrect"}
    if "ran" in found:
        found = (found - {"ran"}) | {"passed" if re.search(r"status|state|^ok$", key.lower()) else "success"}
    signs = {_SIGNS[sign] for sign in text if sign in _SIGNS}
    return found or ({"passed" if signs.pop() else "fail"} if len(signs) == 1 else set())


def _leaves(value: Any, deepest: int = 4) -> Iterable[Any]:
    for one in value[:100]:
        yield from _leaves(one, deepest - 1) if isinstance(one, list) and deepest else (one,)


def _no_time(value: Any) -> bool:
    """Whether it stands for the time of what failed, as tuners write it: infinite, or a round power of ten."""
    return isinstance(value, float) and (value == inf or (1e9 <= value < inf and log10(value).is_integer()))


# --- numbers ----------------------------------------------------------------------------------------------------------


def ratio_in(value: Any, key: str) -> float | None:
    """The ratio of times that a value states, under a key that calls it a speedup; None where it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        whole = 1 + value / 100 if re.search(r"pct|percent|%", key.lower()) else float(value)
        return whole if whole > 0 and isfinite(whole) else None
    text = value.strip() if isinstance(value, str) else ""
    if match := re.fullmatch(
        rf"~?({_NUMBER})(?:\s*[x×])?(?:\s*(faster|slower))?(?:\s*\([^()]*\))?", text, re.IGNORECASE
    ):
        ratio = float(match[1])
        return (1 / ratio if (match[2] or "").lower() == "slower" else ratio) if ratio > 0 else None
    if match := re.fullmatch(rf"~?{_PERCENT.pattern}", text, re.IGNORECASE):
        if _AS_IS.search(key.lower()) and not match[1] and not match[3]:
            return float(match[2]) / 100 or None
        return _changed(match)
    return None


def _changed(match: re.Match[str]) -> float | None:
    part = float(match[2]) / 100
    if (match[3] or "").lower() in ("slower", "worse"):
        return 1 / (1 + part)
    return 1 - part if match[1] == "-" else 1 + part


def _plain(text: str) -> str:
    """A text without marks, and with one kind of minus."""
    return " ".join(re.sub(r"[*`]", "", text[:_LONG].replace("\u2212", "-")).split())


def _clause(text: str) -> str:
    """A verdict with the first of what it rests on; what follows in its brackets may be about something else."""
    match = _ASIDE.match(text)
    return f"{match[1]}: {match[2].split(';')[0]}" if match and says(match[1]) & {"kept", "unkept"} else text


def _trend(text: str) -> set[str]:
    """What several figures say together: all of a time that went up or down, or a range of factors."""
    spans = re.findall(rf"(?<![\w.])({_NUMBER})\s*[-–]\s*{_NUMBER}\s*[x×] (?:speed-?up|faster)", text, re.IGNORECASE)
    found = {"better"} if spans and min(map(float, spans)) > 1 + BAND else set[str]()
    for part in re.split(r"[;.]\s", text):
        timed, signs = _TIMED.search(part), [match[1] for match in _SIGNED.finditer(part)]
        if signs and timed and len({*signs}) == 1 and len(_SIGNED.findall(part, timed.end())) == len(signs):
            found |= {"slower" if signs[0] == "+" else "better"}
        elif len(signs) > 1 and {*signs} == {"-"} and not timed and "unkept" in says(text):
            found |= {"slower"}
    return found


def _stated_in(text: str, key: str) -> float | None:
    """The one ratio in the words of a result: `1.18× faster`, `12% slower`, `3.10 ms -> 2.48 ms`, `11.0 vs 7.48 ms`, or
    `reverted (8.5 H/s vs baseline 9.5 H/s, -11%)`."""
    text = _clause(_plain(text))
    factors = {1 / float(n) if slower else float(n) for n, slower in _TIMES.findall(text) if float(n) > 0}
    pair = _pair_in(text)
    if len(factors) == 1 and not (pair and re.search(r"[x×]\)? (?:vs|over|than)", text)):
        return factors.pop()
    if pair or factors:
        return pair
    signed = _by_sign(text)
    shares = [] if signed or " to " in text else list(_PERCENT.finditer(text))
    if len(shares) != 1:
        return signed
    by_key = re.search(r"perf|speed|gain|improve|throughput", key.lower()) and shares[0][1]
    return _changed(shares[0]) if shares[0][3] or by_key else None


def _by_sign(text: str) -> float | None:
    """The one per cent with a sign that agrees with the verdict beside it, or that stands behind a rate."""
    ratios = set()
    for part in re.split(r"[;,]\s", text):
        for match in [] if _OTHER.search(part) or re.search(r"% ?to [+-]", part) else _SIGNED.finditer(part):
            change = float(match[1] + match[2]) / 100
            timed = _TIMED.search(part, max(0, match.start() - 40), match.end() + 10)
            ratios |= {1 / (1 + change) if timed else 1 + change} if change > -1 else set()
    words = says(text)
    up, down = bool(words & {"kept", "better"}), bool(words & {"unkept", "slower"})
    if up is down and not re.search(rf"\d\s*(?:{_RATES})\s*\([+-]", text, re.IGNORECASE):
        return None
    agreed = [one for one in ratios if up is down or (one > 1) is up]
    return agreed[0] if len(agreed) == 1 else None


def _pair_in(text: str) -> float | None:
    """Time before over time after, of two times or rates of a text; None where several say different things."""
    found = []
    for number, unit, onward, _, second, last in (match.groups() for match in _PAIR.finditer(_plain(text))):
        kinds = {bool(re.fullmatch(_RATES, one, re.IGNORECASE)) for one in (unit or last, last)}
        rate = True in kinds
        one, other = (
            cost(value, RATE) if rate else cost(f"{value} {kind}", 1)
            for value, kind in ((number or "", unit or last), (second, last))
        )
        if one and other and len(kinds) == 1:
            found.append(one / other if onward else other / one)
    return found[0] if found and max(found) <= min(found) * (1 + _AGREES) else None


def cost(value: Any, unit: float) -> float:
    """A time as it is written, in seconds, or the inverse of a rate; 0 where it is none."""
    if isinstance(value, str):
        found = list(find_quantities(1, normal(value.replace("μ", "µ")[:200]))) if unit != RATE else []
        if len(found) == 1 and found[0].readings[0].unit.dimension == "seconds":
            return float(found[0].readings[0].base)
        if long := re.fullmatch(rf"({_NUMBER})\s*(min|h)(?:inutes?|utes?|ours?|s)?", value.strip(), re.IGNORECASE):
            return float(long[1]) * (60 if long[2].lower() == "min" else 3600)
        form = rf"[~*`]*({_NUMBER})(?![\d.]|\s*(?:%|[x×]\b))" if unit == RATE else rf"({_NUMBER})$"
        match = re.match(form, value.strip().replace(",", ""))
        value = float(match[1]) if match else 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        return 0.0
    return 1 / value if unit == RATE else float(value) * unit


# --- the outcome ------------------------------------------------------------------------------------------------------


def measures(fields: Iterable[Field]) -> list[Field]:
    """The time of what was tried, or else its rate; a best one counts where nothing else is said. Those that mean less
    come later."""
    found = [one for one in fields if one.role in ("after", "elapsed", "best") and cost(one.value, one.unit)]
    return sorted(found, key=lambda one: (one.unit == RATE, MEASURES.index(one.role), one.rank))


def result_of(
    own: list[Field],
    free: str,
    title: str,
    baseline: bool,
    before: Mapping[str, float],
    timed: Field | None,
    change: str,
) -> Result:
    """What a record says of its result. `free`: its change and notes; `title`: the headings above it; `before`: what
    went before by its name, as its cost, compared with `timed`; `change`: it may end with how much it gained."""
    by_role: dict[str, list[Field]] = {}
    for one in own:
        by_role.setdefault(one.role, []).append(one)
    notes: list[str] = []
    said = [_verdict(one.value, one.key) for one in by_role.get("outcome", ())]
    checked = [_verdict(one.value, one.key) for one in by_role.get("correct", ())]
    right = any(words & {"passed", "success"} for words in checked)
    said = [words - {"fail"} if right and "passed" in words else words for words in said]
    verdict = set[str]().union(*said, *(words - {"passed", "fail", "success"} for words in checked))
    against, errors = _against(by_role, checked)
    for one in by_role.get("decision", ()):
        word = _verdict(one.value)
        yes, back = bool(word & {"passed", "kept", "better", "success"}), bool({"unkept"} & says(one.key))
        verdict |= {"unkept"} if yes == back and (yes or "fail" in word) else {"kept"} if yes else set()
        verdict |= says(one.key) & {"better"} if yes else set()
    for one, words in zip(by_role.get("outcome", ()), said, strict=True):
        if not words and not isinstance(one.value, list) and not _stated_in(str(one.value), one.path):
            if not re.match(r"\W*\d", str(one.value)):
                before = {}  # a verdict that is not understood may say anything of its time
            notes.append(f"outcome: {visible(str(one.value))[:40]} is none of {', '.join(Outcome)}")
    verdict |= {"kept"} if "better" in verdict and "slower" not in verdict else set()
    took = cost(timed.value, timed.unit) if timed else 0.0
    ratio = _ratio(by_role, notes)
    bad = _bad(verdict, against, errors, right, free, ratio)
    if bad is Outcome.REJECTED and ratio is not None and ratio <= 1:
        return Result(bad, Speedup(median=ratio), tuple(notes))
    if bad:
        if ratio is not None:
            notes.append(f"speedup: the outcome is {bad}, and the speedup is {ratio:g}, which is left out")
        return Result(bad, None, tuple(notes))
    if baseline:
        elsewhere = ratio is not None and abs(ratio - 1) > _AGREES
        return Result(Outcome.UNMEASURED, None, tuple(notes), kept=True, elsewhere=elsewhere)
    doubt = says("; ".join(_doubts(by_role))) & {"incorrect", "rejected"}
    if doubt and not right and not verdict:
        if ratio is not None:
            notes.append(f"speedup: its words speak of what is {doubt.pop()}, and {ratio:g} is left out")
        return Result(Outcome.UNMEASURED, None, tuple(notes))
    evidence = _Evidence(verdict, says(free), says(title) if "outcome" in by_role else set(), ratio)
    evidence.compare({name: one / took for name, one in before.items() if one and took}, notes)
    if match := _GAINED.search(change[-60:]):
        evidence.told = _changed(match)
    outcome, found = evidence.weigh()
    unused = dict.fromkeys(filter(None, (ratio, evidence.chained))) if found is None else {}
    notes += [f"speedup: the outcome is {outcome}, and the speedup is {one:g}, which is left out" for one in unused]
    kept = "kept" in verdict or ("unkept" not in verdict and (outcome is Outcome.SUCCESS or "judges" in before))
    elsewhere = None not in (ratio, evidence.chained) and _by(ratio) is not _by(evidence.chained)
    ratios = Speedup(median=found) if found else None
    return Result(outcome, ratios, tuple(notes), kept, elsewhere, "unkept" in verdict)


def _against(by_role: dict[str, list[Field]], checked: list[set[str]]) -> tuple[set[str], bool]:
    """(what speaks against a record, whether an error is told)."""
    errors = [one for one in by_role.get("error", ()) if says(str(one.value)) or one.value not in ("none", "ok")]
    bad = {"failed", "incorrect", "rejected"}
    errors = [one for one in errors if says(str(one.value)) & bad or "neutral" not in says(str(one.value))]
    against = set[str]().union(*(says(str(one.value)) for one in errors))
    for one in by_role.get("failing", ()):
        number = isinstance(one.value, int | float) and not isinstance(one.value, bool)
        denied = one.value in (0, "0") or (
            isinstance(one.value, str) and bool(_verdict(one.value) & {"fail", "passed"})
        )
        if not denied and not (number and "time" in one.key.lower()):  # how long it may take
            against |= says(f"{one.key} {one.value}") & {"failed", "incorrect", "rejected"} or {"failed"}
    for one, words in zip(by_role.get("correct", ()), checked, strict=True):
        if "fail" in words:
            against |= {"failed" if "compil" in one.key.lower() else "unsound"}
    return against, bool(errors)


def _doubts(by_role: dict[str, list[Field]]) -> Iterable[str]:
    """Notes, and short texts of no known field."""
    for role in ("notes", "observed", ""):
        for one in by_role.get(role, ()):
            for text in one.value if isinstance(one.value, list) else [one.value]:
                if isinstance(text, str) and (role or len(text) <= _SHORT):
                    yield text


def _bad(
    verdict: set[str], against: set[str], errors: bool, right: bool, free: str, ratio: float | None
) -> Outcome | None:
    """The outcome of what was wrong, failed, or was not let pass."""
    told = against | verdict
    for kind in ("rejected", "failed", "incorrect"):
        if kind in told:
            return Outcome(kind)
    failing = "fail" in verdict and "slower" not in verdict
    doubted = "unsound" in told or (failing and not (ratio and ratio <= 1 + BAND))
    nothing = not verdict and ratio is None and not right
    if errors and "unsound" not in told:
        return Outcome.FAILED
    if doubted or "unkept" in verdict or nothing:
        where = re.split(r"[.:;](?:\s|$)|\n", free)[0] if nothing and not doubted else free
        found = says(where)
        if "failed" in found and (doubted or ratio is None):
            return Outcome.FAILED
        fails = "unkept" in verdict and "slower" not in found and re.search(r"\bFAIL\b", where)
        if ("incorrect" in found or fails) and not right:
            return Outcome.INCORRECT
    if "unsound" in told:
        return Outcome.INCORRECT
    return Outcome.FAILED if doubted else None


def _by(ratio: float | None) -> Outcome:
    if ratio is None:
        return Outcome.UNMEASURED
    return Outcome.SUCCESS if ratio > 1 + BAND else Outcome.REGRESSION if ratio < 1 - BAND else Outcome.NEUTRAL


@dataclass
class _Evidence:
    """What speaks for an outcome of what is right as far as is known."""

    verdict: set[str]
    free: set[str]
    title: set[str]
    stated: float | None
    chained: float | None = None
    """What was kept before over this, by their own times or rates."""
    by_rows: Outcome = Outcome.UNMEASURED
    """What all rows before agree on, where none is known to be the one that was changed."""
    told: float | None = None
    """The gain with which the change ends."""
    elsewhere: bool = False
    """Ratios of the table are to something else than what was changed."""

    def compare(self, ratios: dict[str, float], notes: list[str]) -> None:
        """`ratios`: to each record before that it may have changed. One that is named counts; others, if they agree."""
        self.elsewhere = "elsewhere" in ratios
        judged = bool(self.verdict & {"kept", "unkept", "slower", "neutral", "success"} or "judges" in ratios)
        sure = ratios.get("parent") or ratios.get("step") or (ratios.get("kept") if judged else None)
        if _by(ratios.get("gap")) is Outcome.REGRESSION and "unkept" in self.verdict:
            self.by_rows = Outcome.REGRESSION
        rows = [ratios[name] for name in ("first", "last", "best") if name in ratios and not judged]
        if sure is None and rows:
            if max(rows) <= min(rows) * (1 + _AGREES):
                sure = rows[-1]
            else:
                self.by_rows = _by(rows[0]) if len({_by(one) for one in rows}) == 1 else self.by_rows
            if sure is None and self.stated is None:
                shown = ", ".join(f"{one:.4g}" for one in dict.fromkeys(rows))
                notes.append(f"speedup: which row it changed is not said; to the first, last and best it is {shown}")
        self.chained = sure

    def weigh(self) -> tuple[Outcome, float | None]:
        """(outcome, the ratio that agrees with it)."""
        rows = self.by_rows if self.chained is None else _by(self.chained)
        unsaid = self.chained is None and not (self.elsewhere and rows is not Outcome.UNMEASURED)
        agrees = unsaid or (rows is _by(self.stated) and not (self.elsewhere and self.chained))
        ratio = self.stated if agrees else self.chained
        by, words = _by(ratio), self.verdict | self.free
        heard = (words if "unkept" in self.verdict else self.verdict) & {"better", "slower", "neutral"}
        if ratio and by is Outcome.NEUTRAL and abs(ratio - 1) > BAND / 4:  # little, and told all the same
            if ratio < 1 and heard == {"slower"}:
                by = Outcome.REGRESSION
            elif ratio > 1 and heard - {"neutral" if "kept" in self.verdict else ""} == {"better"}:
                by = Outcome.SUCCESS
        if self.told is not None and (ratio is None or by is Outcome.SUCCESS) and "unkept" in self.verdict:
            ratio, by = self.told, _by(self.told)
        if "unkept" in self.verdict or ("taken_back" in self.free and "kept" not in self.verdict):
            if by in (Outcome.REGRESSION, Outcome.NEUTRAL):
                return by, ratio
            if "neutral" in words and "slower" not in words:
                return Outcome.NEUTRAL, None
            slower = "slower" in words or self.by_rows is Outcome.REGRESSION
            return (Outcome.REGRESSION, None) if slower else (Outcome.UNMEASURED, None)
        if "slower" in self.verdict and not (self.verdict & {"kept", "better"} and by is Outcome.SUCCESS):
            if by in (Outcome.NEUTRAL, Outcome.REGRESSION):
                return by, ratio
            either = Outcome.SUCCESS if "kept" in self.verdict else Outcome.UNMEASURED
            return (either if "better" in self.verdict else Outcome.REGRESSION), None
        if "neutral" in self.verdict and not ("better" in self.verdict and by is Outcome.SUCCESS):
            return Outcome.NEUTRAL, ratio if ratio and abs(ratio - 1) <= 5 * BAND else None
        if self.verdict & {"kept", "success"}:
            if by is Outcome.REGRESSION and "kept" in self.verdict and self.chained is None:
                return Outcome.UNMEASURED, None  # a ratio to something else, or a contradiction
            if ratio is None:  # what was kept was not said to be faster
                better = self.verdict & {"better", "success"} or self.by_rows is Outcome.SUCCESS
                return (Outcome.SUCCESS if better else Outcome.UNMEASURED), None
            return by, ratio
        if ratio is not None:
            noise = "neutral" in self.free and "fail" not in self.verdict and abs(ratio - 1) <= 5 * BAND
            return (Outcome.NEUTRAL if noise else by), ratio
        if "better" in self.title:
            return Outcome.SUCCESS, None
        return (Outcome.NEUTRAL if "unkept" in self.title and self.verdict else self.by_rows), None


def _ratio(by_role: dict[str, list[Field]], notes: list[str]) -> float | None:
    """Time before over time after: the stated one, where the times do not contradict it."""
    stated: float | None = None
    for one in sorted(
        (*by_role.get("speedup", ()), *by_role.get("gain", ())), key=lambda one: (one.role != "speedup", one.rank)
    ):
        key = f"{one.path} %" if one.role == "gain" and "%" in str(one.value) else one.path
        stated = ratio_in(one.value, key)
        if stated is not None:
            break
        if one.role == "speedup" and one.value not in (0, "0", "0.0", "0.00"):
            notes.append(f"speedup: {visible(str(one.value)[:40])} is not a ratio such as 1.25 or 1.25x")
    in_words = [found for one in by_role.get("outcome", ()) if (found := _stated_in(str(one.value), one.path))]
    if stated is None and len(set(in_words)) == 1:
        stated = in_words[0]
    pairs = _pairs(by_role) + [found for one in by_role.get("outcome", ()) if (found := _pair_in(str(one.value)))]
    if stated is None:
        if len({round(pair, 6) for pair in pairs}) > 1:
            notes.append("speedup: several times of before are stated, and none is chosen")
        return pairs[0] if len({round(pair, 6) for pair in pairs}) == 1 else None
    as_is = next((one.value for one in by_role.get("speedup", ()) if "%" in str(one.value)), None)
    less = 1 / (2 - stated) if stated < 2 and _is_share(by_role) else None  # of the time
    for reading in (stated, None if as_is is None else ratio_in(as_is, "ratio"), less):
        if reading and (not pairs or any(abs(pair / reading - 1) <= _AGREES for pair in pairs)):
            return reading
    notes.append(f"speedup: {stated:g} is stated, and the times say {pairs[0]:.4g}; it is left out")
    return None


def _is_share(by_role: dict[str, list[Field]]) -> bool:
    stated = (*by_role.get("speedup", ()), *by_role.get("gain", ()))
    return any("%" in str(one.value) or re.search(r"pct|percent|%", one.key.lower()) for one in stated)


def _pairs(by_role: dict[str, list[Field]]) -> list[float]:
    own = next(iter(measures(chain.from_iterable(by_role.values()))), None)
    if own is None:
        return []
    before = [one for one in by_role.get("before", ()) if (one.unit == RATE) == (own.unit == RATE)]
    return [t / cost(own.value, own.unit) for one in before if (t := cost(one.value, one.unit))]
