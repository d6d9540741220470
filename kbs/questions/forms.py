"""What kind of answer a question wants: its form, and whether it asks for what was measured."""

from __future__ import annotations

import re
from enum import StrEnum


class Form(StrEnum):
    """The form of the right answer."""

    VALUE = "value"
    YES_NO = "yes-no"
    COMPARISON = "comparison"
    """Which of the named things has more."""
    DIFFERENCE = "difference"
    """What sets two concepts apart."""
    DEFINITION = "definition"
    REASON = "reason"
    REMEDY = "remedy"
    HOW_TO = "how-to"
    CALCULATION = "calculation"
    EXPERIENCE = "experience"
    """What came of past experiments."""
    TOPIC = "topic"
    """Words with no question: whatever is known of them."""


_FLAGS = re.IGNORECASE
_TRIED = re.compile(
    r"(?:^|[.?!,;:]\s+|\b(?:what|how|why|which)\b[^.?!]{0,40}?\s)did (?!it\b)(?!not\b)[^.?!]{1,80}?\b(?:help|work"
    r"|pay off|hurt|fail|improve|gain|bring)\b"
    r"|\bwhat\b.{1,40}?\b(?:worked|failed|helped)\b"
    r"|\b(?:have|has|had) (?:we|i) (?:already |ever )?(?:tried|learned|learnt)\b",
    _FLAGS,
)
_AUXILIARY = re.compile(
    r"(?:(?:so|and|but|also|hi|hello|then|now|well|ok|okay|if so),? )*"
    r"(?:is|isn't|are|aren't|does|doesn't|do|don't|did|didn't|can|can't|could|couldn't|should|shouldn't|will"
    r"|won't|would|"
    r"wouldn't|has|have|had|was|were|am|may|must)\b(?! (?:you (?:please )?(?:explain|tell|help|give|show)"
    r"|(?:i|we|any(?:one|body)|some(?:one|body))(?: please)? (?:explain|tell|know|ask|inquire|clarify|elaborate))\b"
    r"(?! (?:(?:me|us) )?(?:if|whether)\b))",
    _FLAGS,
)
_ASIDE = re.compile(r"\b(?:is|are) there (?:a|any|some)?(?: \w+)? ?(?:way|method|trick|technique)s?\b", _FLAGS)
_RIGHT = re.compile(r",? (?:right|correct|true|no|isn't it|doesn't it|or not) ?\?*$", _FLAGS)
_COMES = r"\bhow\b[^.?!]{0,40}?\d[^?!]{0,30}?\b(?:calculated|computed|derived|obtained|determined|reached|c[ao]mes?)\b"
"""How a stated number came about."""
_REASON = re.compile(
    rf"{_COMES}|"
    r"\bwhy\b|\bhow come\b|\b(?:what|which)\b.{0,30}?\b(?:limits|(?:could|would|can|may|might|does) limit|bounds"
    r"|causes?|bottlenecks?|holds? back|makes?|explains?)\b"
    r"|\breasons?\b(?! (?:to|about)\b)|\b(?:insights?|ideas?|explanations?)\b(?= (?:into|why|for|on|of|what)\b|\W*$)"
    r"|\bbottleneck (?:of|in|for)\b|\bwhat(?:'s| is) wrong\b|\bis (?:so |very )?slow$",
    _FLAGS,
)
_CHANGE = (
    r"(?:fix|avoid|reduc|speed|optimi[sz]|improv|hid(?:e|ing)|eliminat|get(?:ting)? rid|fast(?:er)?|increas"
    r"|rais|lower|remov|"
    r"prevent|minimi[sz]|mitigat|overcom|resolv|solv|boost|accelerat|maximi[sz]|saturat|deal(?:ing)? with|tun(?:e|ing))"
)
_HOW = (
    r"(?:how (?:do|can|could|should|would|might|to|does one)|what(?:'s| is) the (?:best|right|proper|fastest|easiest) "
    r"(?:way|method)|ways? to|tips|(?:is|are) there (?:a|any|some)? ?(?:\w+ )?(?:way|trick|method)s?)"
)
_REMEDY = re.compile(
    rf"\b{_HOW}\b.{{0,80}}?\b{_CHANGE}|\bwhat (?:should|can|could|else)\b.{{0,40}}?\b(?:try|do|change|help)"
    rf"|^(?:{_CHANGE})\w*\b|\bwhich (?:optimi[sz]ations?|techniques?|methods?)\b",
    _FLAGS,
)
_HOW_TO = re.compile(rf"\b{_HOW}\b|\bwhen (?:should|do|to)\b", _FLAGS)
_CALCULATION = re.compile(
    r"\bhow long\b|\b(?:minimum|least|shortest|lower bound|floor|theoretical) (?:run ?)?time\b|\bfastest possible\b"
    r"|\bhow fast can\b|\bridge point\b|\bbytes in flight\b|\bhow many (?:bytes|flops?|operations)\b"
    r"|\b(?:calculate|compute|estimate)\b.{0,20}\b(?:the|my|its|occupancy|intensity|roofline|time)\b",
    _FLAGS,
)
_COMPARE = re.compile(
    r"\b(?:vs\.?|versus|compare[ds]?|comparison|than|better|faster|or|difference|differ|against|over)\b", _FLAGS
)
_DIFFERENCE = re.compile(
    r"\bdifferences? between\b|\bdiffer(?:s|ent)? (?:from|to|than)\b|\b(?:vs\.?|versus)\b|\bcompared? (?:to|with)\b"
    r"|\brather than\b|\binstead of\b",
    _FLAGS,
)
_VALUE = re.compile(
    r"\bhow (?:much|many|large|big|wide|high|fast|deep)\b|\bwhat(?:'s| is| are| was| were) (?:the|its)\b"
    r"|\bwhich\b|^give\b|^list\b"
    r"|\bwhat \w+(?: \w+){0,3} (?:does|do|is|are|has|have|can)\b"
    r"|\bmax(?:imum)?\b|\blimit\b|\bspecs?\b|\bhow (?:do|does) .{1,40} compare\b",
    _FLAGS,
)
_DEFINITION = re.compile(
    r"\bwhat(?:'s| is| are| does| do)\b|\bexplain\b|\bdefine\b|\bdefinition\b|\bmean(?:s|ing)?\b|\bhow does\b"
    r"|\bwhat exactly\b",
    _FLAGS,
)
MEASURED = re.compile(
    r"\b(?:(?:did |do |have )?others (?:get|got|measured?|reported?|seen?|reach(?:ed)?)|measured|achiev(?:ed|able)"
    r"|in practice|in reality|real[- ]world|reali[sz]e?d?|realistic(?:ally)?|sustained|"
    r"has (?:anyone|anybody|someone)|have people|can i (?:actually|really)|people (?:get|reach|see)"
    r"|micro-?benchmark(?:s|ed)?)\b",
    _FLAGS,
)
"""Words that ask for what was measured, and not for a peak."""
_TYPE = r"(?:[fb]p?f?16|bfloat16|half|fp32|fp64|[sd]gemm)"
_RATE = r"(?:rates?|throughputs?|peaks?|[tp]?flops|performance|compute)"
PLAIN = re.compile(
    r"\bnon[- ]?(?:tensor|matrix)(?:[- ]?cores?)?\b"
    r"|\b(?:without|w/o|no|not (?:on|using|with|through)|outside(?: of)?|excluding|other than|off)"
    r" (?:the |any |using )?(?:tensor|matrix)[- ]?cores?\b"
    rf"|\bvector (?={_TYPE}|{_RATE})|(?<=16)[- ]vector(?= {_RATE}|\W*$)|\bhalf[- ]precision vector\b"
    rf"|\b(?:on|with|by|using) (?:the |its )?(?:cuda|vector|fp32) (?:cores?|units?|pipes?)(?! (?:per|in))\b"
    rf"|\bcuda[- ]cores? (?={_RATE}|{_TYPE})",
    _FLAGS,
)
"""Words that ask for a rate of arithmetic without tensor cores."""
BOTH = re.compile(
    r"(?<!not )\b(?:with|and|or|versus|vs\.?|than) (?:the )?tensor\b|\btensor(?:[- ]cores?)? (?:and|or|versus|vs\.?) ",
    _FLAGS,
)
"""Words that ask, beside `PLAIN`, for a rate with tensor cores too."""


_LONG = 14
"""Words of what is no mere topic."""
_ASKS = re.compile(
    r"\?|\b(?:what|which|how|why|who|whether|explain|compare|list|give|tell|calculate|compute|estimate|wonder\w*"
    r"|wrong|correct|confirm\w*)\b"
    r"|[？吗呢]|什么|如何|怎么|为什么|哪|多少|是否|是不是",
    _FLAGS,
)
"""What only a text has that asks."""


def form_of(text: str, *, names: int, past: bool) -> Form:
    """The form of a question's last sentence that asks. `names`: how many GPUs it names apart; `past`: whether it uses
    the words of one about past experiments."""
    if past or _TRIED.search(text):
        return Form.EXPERIENCE
    form = _form_of_any(text, names)
    # Who tells of a problem at length and asks nothing wants to know why: "max" or "limit" in it asks for no value.
    tells = len(text.split()) > _LONG and not _ASKS.search(text)
    return Form.REASON if tells and form in (Form.TOPIC, Form.VALUE, Form.DEFINITION) else form


def _form_of_any(text: str, names: int) -> Form:
    """The form of the last sentence that has one; a topic where none has."""
    while (form := _form_of_last(text, asked := asking(text), names)) is None:
        if asked == text.strip():
            return Form.TOPIC
        text = text[: text.rindex(asked)] + "."  # the sentence before it may say what is wanted
    return form


def _form_of_last(text: str, asked: str, names: int) -> Form | None:
    """The form of `asked`, the last sentence of a text that asks; None where it has none."""
    if names > 1 and _COMPARE.search(text) and not re.match(r"why\b", asked, _FLAGS):
        return Form.COMPARISON
    clause = re.split(r"[,:;]\s+|\s[-–]\s", asked)[-1]  # "I get 2 TB/s, is that good?"
    polar = bool(_AUXILIARY.match(asked) or _RIGHT.search(asked) or (clause.endswith("?") and _AUXILIARY.match(clause)))
    polar = polar and not _ASIDE.search(asked)
    for form, pattern in (
        (Form.REASON, _REASON),
        (Form.CALCULATION, _CALCULATION),
        (Form.REMEDY, _REMEDY),
        (Form.DIFFERENCE, _DIFFERENCE),
        (Form.HOW_TO, _HOW_TO),
    ):
        if not polar and pattern.search(asked):
            return form
    if polar:
        return Form.YES_NO
    for form, pattern in ((Form.VALUE, _VALUE), (Form.DEFINITION, _DEFINITION)):
        if pattern.search(asked):
            return form
    return None


_ACCOUNT = re.compile(_COMES, _FLAGS)


def wants_account(text: str) -> bool:
    """Whether any sentence asks how a number came about: it is then told, and not asked."""
    return bool(_ACCOUNT.search(text))


_CUES = re.compile(rf"\b{_CHANGE}\w*", _FLAGS)


def cues(text: str) -> list[str]:
    """The words of a text that only say which form of answer it wants."""
    found = [
        match.group(0) for form in (_CALCULATION, _VALUE, _DEFINITION, _DIFFERENCE) for match in form.finditer(text)
    ]
    return [one for one in (*found, *_CUES.findall(text)) if len(one.split()) <= _SHORT]


_SHORT = 4
"""Words of what is a cue and not a part of the subject."""
_STOP = re.compile(
    r"(?<=[?!])\s+|(?:(?<=\.)|(?<=\.\.\]))\s+(?=[A-Z0-9\[]|(?:what|how|why|which|when|where|is|are|does|do|can|could|should|will"
    r"|would)\b)"
)


_CLAUSE = re.compile(
    r"(?:\s[-–—]+\s+|[:;]\s+|,\s+(?:so\s+)?)"
    r"(?=(?:what|which|how|why|is|are|does|do|did|can|could|should|will|would)\b)",
    _FLAGS,
)
_LEAST = 4
"""Words of a clause that asks by itself."""


def asking(text: str) -> str:
    """The last sentence that asks, or the whole text: what stands before tells the circumstances."""
    sentences = [part.strip() for part in _STOP.split(text.strip()) if part and part.strip()]
    questions = [one for one in sentences if one.endswith("?") and len(one.split()) > 1]
    return questions[-1] if questions else text.strip()


def asking_clause(asked: str) -> str:
    """The end of a sentence from the clause on that asks: "no such row in the table - what is the limit?"."""
    clauses = [match.end() for match in _CLAUSE.finditer(asked) if len(asked[match.end() :].split()) >= _LEAST]
    return asked[clauses[0] :] if clauses else asked


_BACK = re.compile(r"\b(?:it|this|that|these|those|they|them)\b", _FLAGS)


def refers_back(clause: str) -> bool:
    """Whether a clause speaks of what stands before it: "what could cause that?"."""
    return bool(_BACK.search(clause))


_NOT = re.compile(r"\b(?:not|no|lacks?|without)\b|n't\b", _FLAGS)


def denies(text: str) -> bool:
    """Whether a question takes for granted that something is not so: "it does not have TMA, right?"."""
    asked = asking(text)
    return bool(_RIGHT.search(asked) and _NOT.search(_RIGHT.sub("", asked)))
