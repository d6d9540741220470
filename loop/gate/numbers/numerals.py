"""Numbers that a text has in words or in other numerals, as digits: English and other languages, Chinese, Japanese and
Korean numerals, numerals and tallies of any script, Roman numerals, hexadecimal and binary ones, shares and multiples.

A word of another language is read by its parts (`hundertvierundvierzig` is 100 + 4 + 40). Where that gives another
value than its speaker means (`quatre-vingt`), it is a number all the same, and nothing accounts for it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal

from loop.gate.numbers.wording import PART, UNITS

_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
)
_ONES = {word: value for value, word in enumerate(_ENGLISH.split())}
_ENGLISH_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * value for value, word in enumerate(_ENGLISH_TENS.split(), 2)}
_MAGNITUDES = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "quadrillion": 10**15, "dozen": -12, "gross of": -144,
}  # fmt: skip
_WORD = "|".join(sorted((*_ONES, *_TENS, *_MAGNITUDES), key=len, reverse=True))
_AND = "|".join(rf"(?<={word})[ \t]+and[ \t]+" for word in _MAGNITUDES)
_SPELLED = re.compile(
    rf"(?<![\w-])(?:(?:a|an)\s+(?=(?:{'|'.join(_MAGNITUDES)})\b))?(?:{_WORD})\b"
    rf"(?:(?:[ \t-]+|{_AND}|[ \t]+point[ \t]+)(?:{_WORD})\b){{0,16}}",
    re.IGNORECASE,
)
_BIG = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)[ \t-]*(hundred|thousand|million|billion|trillion|quadrillion)\b", re.I)

# --- other languages --------------------------------------------------------------------------------------------------

_SMALL_ABROAD = (
    "ein un uno una een en ett um|zwei deux dos due dois twee tva duas|drei trois tres tre drie três"
    "|vier quatre cuatro quattro quatro fyra|fünf fuenf cinq cinco cinque vijf fem|sechs six seis sei zes sex"
    "|sieben sept siete sette sete zeven sju|acht huit ocho otto oito åtta|neun neuf nueve nove negen nio"
    "|zehn dix diez dieci dez tien tio|elf onze once undici elva|zwölf zwoelf douze doce dodici twaalf tolv"
)
_CYRILLIC = (
    "один одна одно|два две|три|четыре|пять|шесть|семь|восемь|девять|десять|одиннадцать|двенадцать|тринадцать"
    "|четырнадцать|пятнадцать|шестнадцать|семнадцать|восемнадцать|девятнадцать"
)
_BIG_ABROAD = {
    20: "zwanzig vingt vingts veinte veinti venti vinte twintig tjugo двадцать dwadzieścia",
    30: "dreißig dreissig trente treinta trenta trinta dertig trettio тридцать trzydzieści",
    40: "vierzig quarante cuarenta quaranta quarenta veertig fyrtio сорок czterdzieści",
    50: "fünfzig fuenfzig cinquante cincuenta cinquanta cinquenta vijftig femtio пятьдесят pięćdziesiąt",
    60: "sechzig soixante sesenta sessanta sessenta zestig sextio шестьдесят sześćdziesiąt",
    70: "siebzig septante setenta settanta zeventig sjuttio семьдесят siedemdziesiąt",
    80: "achtzig huitante octante ochenta ottanta oitenta tachtig åttio восемьдесят osiemdziesiąt",
    90: "neunzig nonante noventa novanta negentig nittio девяносто dziewięćdziesiąt",
    100: "hundert honderd ciento cento hundra сотня двести триста czterysta dwieście",
    1000: "tausend duizend mille mila tusen тысяч тысяча тысячи tysiąc tysiące tysięcy",
    10**6: "millionen millions millón millones milione milioni milhão milhões miljoen miljoner миллион миллиона milion",
    10**9: "milliarde milliarden milliard milliards miljard miliardo miliardi миллиард миллиардов",
}
_ABROAD = {
    **{word: value for value, group in enumerate(_SMALL_ABROAD.split("|"), 1) for word in group.split()},
    **{word: value for value, group in enumerate(_CYRILLIC.split("|"), 1) for word in group.split()},
    **{word: value for value, group in _BIG_ABROAD.items() for word in group.split()},
    "cent": 100, "mil": 1000, "cien": 100, "cem": 100, "сто": 100, "und": 0,
}  # fmt: skip
_ATOM = re.compile("|".join(sorted(_ABROAD, key=len, reverse=True)), re.IGNORECASE)
_PIECE = rf"(?:{_ATOM.pattern})"
_CLEAR = re.compile("|".join(word for group in _BIG_ABROAD.values() for word in group.split()), re.IGNORECASE)
_RUN = rf"{_PIECE}(?:(?:und|[ \t-]+(?:et|y|e|und|en|och|i)[ \t-]+|[ \t-]+)?+{_PIECE}){{0,9}}+"
_SPELLED_ABROAD = re.compile(rf"(?<!\w){_RUN}(?!\w)", re.IGNORECASE)
_PERCENT_ABROAD = re.compile(
    r"\b(?:pour[ \t-]cent|por[ \t]cien?to|por[ \t]cento|per[ \t]cento|prozent|procent)\b", re.I
)
_UNIT = re.compile(rf"[ \t-]?(?:{UNITS}|%)")
_EAST = {
    **{one: value for value, group in enumerate(("〇零영공", "一壹", "二两兩贰", "三叁", "四肆", "五伍", "六陆", "七柒",
                                                "八捌", "九玖")) for one in group},
    **{one: value for value, one in enumerate("일이삼사오육칠팔구", 1)},
    **dict.fromkeys("十拾십", 10), **dict.fromkeys("百佰백", 100), **dict.fromkeys("千仟천", 1000),
    **dict.fromkeys("万萬만", 10**4), **dict.fromkeys("亿億억", 10**8),
}  # fmt: skip
_HAN = "〇零一壹二两兩贰三叁四肆五伍六陆七柒八捌九玖十拾百佰千仟万萬亿億"
_EASTERN = re.compile(rf"百分(?=之)|[{_HAN}]+")
_PER_HUNDRED = re.compile(r"百分之\s?(\d+)")
_PART_EAST = re.compile(r"(?<!\d)(\d{1,4})\s?分之\s*(\d{1,4})")
_TIMES_EAST = re.compile(r"(?<=\d)\s?(?:倍|배)")
_SCRIPTS = re.compile(
    r"(?<=[\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?=[\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af])"
)

_KANA = {
    "いち": 1, "に": 2, "さん": 3, "よん": 4, "し": 4, "ご": 5, "ろく": 6, "ろっ": 6, "なな": 7, "しち": 7, "はち": 8,
    "はっ": 8, "きゅう": 9, "く": 9, "じゅう": 10, "ひゃく": 100, "びゃく": 100, "ぴゃく": 100, "せん": 1000,
    "ぜん": 1000, "まん": 10**4, "おく": 10**8,
}  # fmt: skip
_KANA_WORD = "|".join(sorted(_KANA, key=len, reverse=True))
_IN_KANA = re.compile(rf"(?:{_KANA_WORD}){{0,8}}?(?:じゅう|ひゃく|びゃく|ぴゃく|せん|ぜん|まん)(?:{_KANA_WORD}){{0,9}}")
_KOREAN = {
    "하나": 1, "둘": 2, "셋": 3, "넷": 4, "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9, "한": 1, "두": 2,
    "세": 3, "네": 4, "열": 10, "스물": 20, "스무": 20, "서른": 30, "마흔": 40, "쉰": 50, "예순": 60, "일흔": 70,
    "여든": 80, "아흔": 90,
}  # fmt: skip
_KOREAN_TENS = "|".join(word for word, value in _KOREAN.items() if value >= 10)
_KOREAN_ONES = "|".join(word for word, value in _KOREAN.items() if value < 10)
_SINO = "일이삼사오육칠팔구십백천만억"
_IN_KOREAN = re.compile(rf"[{_SINO}]*(?:(?!열){_KOREAN_TENS}|열(?={_KOREAN_ONES}))(?:{_KOREAN_ONES})?|[{_SINO}]{{3,}}")

# --- other numerals ---------------------------------------------------------------------------------------------------

_BASES = re.compile(r"(?<![\w.])0(?:[xX][0-9a-fA-F]+|[bB][01]+|[oO][0-7]+)(?![\w.])")
_POWER = re.compile(r"(?<![\w.^])(\d{1,2})\s?\^\s?(\d{1,2})(?![\w.^])")
_ROMAN = re.compile(
    rf"(?<![\w-])(?=[MDCLXVI]{{2}})M{{0,3}}(?:CM|CD|D?C{{0,3}})(?:XC|XL|L?X{{0,3}})(?:IX|IV|V?I{{0,3}})(?!\w)"
    rf"(?:(?<=[MDCLXVI]{{5}})|(?=\s+(?:{PART})\b)|(?=\s(?:{UNITS})))"
)
"""Roman numerals of five letters, or before a unit or a part of a GPU: `MCM` and `CLI` are no numbers."""
_LETTERS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}

# --- shares and multiples ---------------------------------------------------------------------------------------------

_PARTS_OF = {
    "half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "twelfth": 12, "sixteenth": 16, "twentieth": 20, "hundredth": 100,
}  # fmt: skip
_FRACTION = re.compile(rf"(?<![\d.])(\d{{1,4}})[ \t-]+({'|'.join(_PARTS_OF)})s?\b(?!-)", re.IGNORECASE)
_GAINS = r"(?:faster|quicker|slower|sooner|shorter|less|more|fewer|off)"
_PART_GAINED = re.compile(
    rf"(?P<by>\b(?:gain(?:s|ed)?|speed-?ups?|sav(?:es?|ed|ings?)|loss(?:es)?|lost|improvements?|cuts?|faster|slower|better)"
    rf"(?:[ \t]+(?:of|by))?[ \t]+)?\b(?:a|an|one)[ \t]+(?:(?:good|full|whole|solid|mere|bare|clear|further)[ \t]+)?"
    rf"(?P<part>{'|'.join(_PARTS_OF)})\b(?![ \t-]+of\b)(?P<off>[ \t]+{_GAINS}\b)?",
    re.IGNORECASE,
)
"""A part of a time, said as a gain: `a gain of an eighth`, `a good tenth off`."""
_ONE_PART = re.compile(
    rf"\b(?:a|an|one)[ \t-]+({'|'.join(_PARTS_OF)})(?=[ \t]+of\b)|\b(half)[ \t]+(?:of[ \t]+)?(?=(?:the|its)\b)",
    re.IGNORECASE,
)
_QUICK = r"(?:time|runtime|speed|rate|throughput|bandwidth|performance|latency)"
_TWICE = re.compile(
    rf"\b(?:twice|double)\b(?=[ \t]+(?:as[ \t]+(?:fast|quick|slow)|the[ \t]+{_QUICK})\b)", re.IGNORECASE
)
_MULTIPLIES = re.compile(
    rf"\b(doubl|halv|tripl|quadrupl)(?:es?|ed|ing)[ \t]+(?:the|its|our)?[ \t]*(?={_QUICK}\b)", re.IGNORECASE
)
_HALVES = re.compile(
    rf"\b(?:cut|split|slash)(?:s|ting|ed)?[ \t]+(?:the|its|our)?[ \t]*({_QUICK})[ \t]+(?:in|by)[ \t]+half\b", re.I
)
_FOLD = re.compile(rf"\b({_WORD})-?fold\b", re.IGNORECASE)
_IN_SO_MANY = re.compile(
    r"(?<![\w.])(\d{1,3})[ \t]+(?:in|out[ \t]+of|of[ \t]+every)[ \t]+(?:every[ \t]+)?(\d{1,4})[ \t]+(?=[a-z])"
)
_FACTORS = {"doubl": "2", "halv": "0.5", "tripl": "3", "quadrupl": "4"}
_MAGNITUDE = re.compile(
    r"\b(?:an?|1)[ \t]+order[ \t]+of[ \t]+magnitude\b|\borders[ \t]+of[ \t]+magnitude\b", re.IGNORECASE
)


_MARKS = "|∣ǀ│Il•●○■□▪◆◇★☆✓✔✗/"
_TALLY = re.compile(
    rf"(?<!\S)(?P<one>[{re.escape(_MARKS)}])(?P=one){{2,}}(?:[ \t]*(?P=one)+)*(?![\w|/*])(?<!//)(?<!///)"
)
_OTHER_NUMERALS = re.compile(r"[^\x00-\u024f\u2070-\u2189\u2460-\u24ff\u3007\u3038-\u303a\u3200-\u9fff\uac00-\ud7af]+")


def counted(line: str) -> str:
    """A line in which tallies (`||||| |||`), and numerals of other scripts than those that are read elsewhere, stand in
    digits."""
    line = _TALLY.sub(lambda m: str(m[0].count(m["one"])), line)
    return line if line.isascii() else _OTHER_NUMERALS.sub(_numerals, line)


def _numerals(match: re.Match[str]) -> str:
    """Runs of numerals that are no digits of a place: tens and hundreds of their own, tally marks, counting rods."""
    made, total, last = "", 0, 0
    for one in [*match[0], ""]:
        value = unicodedata.numeric(one, None) if one and unicodedata.category(one) in ("No", "Nl") else None
        if value is None or unicodedata.decimal(one, None) is not None:
            made, total, last = made + (f" {total + last} " if total + last else "") + one, 0, 0
        elif value >= 100 and last:
            total, last = total + last * int(value), 0
        else:
            last += int(value)
    return made


def in_digits(line: str) -> str:
    """A line with its numbers in digits: `a fifth of` is `1/5 of`, `twice as fast` is `2 times as fast`."""
    line = _IN_KANA.sub(_in_kana, line)
    line = _IN_KOREAN.sub(_korean, line)
    line = _SCRIPTS.sub(" ", _EASTERN.sub(_eastern, line))
    line = _TIMES_EAST.sub(" times what", _PART_EAST.sub(r"\2/\1 of", _PER_HUNDRED.sub(r"\1 %", line)))
    line = _BASES.sub(lambda m: str(int(m[0], 0)), line)
    line = _ROMAN.sub(lambda m: str(_roman(m[0])), line)
    line = _MAGNITUDE.sub("10 times", line)
    line = _TWICE.sub("2 times", line)
    line = _MULTIPLIES.sub(lambda m: f"makes {_FACTORS[m[1].lower()]} times the ", line)
    line = _PART_GAINED.sub(
        lambda m: (
            f"{m['by'] or ''}1/{_PARTS_OF[m['part'].lower()]} of the time{m['off'] or ''}"
            if m["by"] or m["off"]
            else m[0]
        ),
        line,
    )
    line = _ONE_PART.sub(lambda m: f"1/{_PARTS_OF[(m[1] or m[2]).lower()]}{' of ' if m[2] else ''}", line)
    line = _HALVES.sub(r"makes 0.5 times the \1", line)
    line = _FOLD.sub(r"\1 times", line)
    line = _BIG.sub(lambda m: _written(Decimal(m[1]) * _MAGNITUDES[m[2].lower()]), line)
    line = _SPELLED.sub(_number, line)
    line = _PERCENT_ABROAD.sub("%", line)
    line = _SPELLED_ABROAD.sub(_abroad, line)
    line = _IN_SO_MANY.sub(lambda m: f"{m[1]}/{m[2]} of the " if int(m[1]) < int(m[2]) else m[0], line)
    line = _FRACTION.sub(lambda m: f"{m[1]}/{_PARTS_OF[m[2].lower()]}", line)
    return _POWER.sub(lambda m: str(int(m[1]) ** int(m[2])), line)


def _number(match: re.Match[str]) -> str:
    told = match[0].lower().replace("gross of", "gross")
    words = [word for word in re.split(r"[ \t-]+", told) if word not in ("a", "an", "and")]
    if words in (["one"], ["dozen"]):
        return match[0]
    if "point" in words:
        whole, after = words[: words.index("point")], words[words.index("point") + 1 :]
        digits = [word for word in after if word in _ONES and _ONES[word] < 10]
        rest = after[len(digits) :]
        value = Decimal(f"{_value(_values(whole))}.{''.join(str(_ONES[word]) for word in digits) or 0}")
        for word in rest:
            value *= abs(_MAGNITUDES.get(word, 1))
        return _written(value)
    return str(_value(_values(words)))


def _values(words: Sequence[str]) -> list[int]:
    return [_ONES.get(word, _TENS.get(word, _MAGNITUDES.get(word, -144))) for word in words]


def _abroad(match: re.Match[str]) -> str:
    """Digits, if one of the words is none of English, or a unit follows."""
    if not _CLEAR.search(match[0]) and not _UNIT.match(match.string, match.end()):
        return match[0]
    return str(_value([_ABROAD[one[0].lower()] for one in _ATOM.finditer(match[0])]))


def _eastern(match: re.Match[str]) -> str:
    values = [_EAST.get(one, 100) for one in match[0]]
    return match[0] if min(values) >= 100 else _eastern_value(values)  # a magnitude alone is part of a word


def _korean(match: re.Match[str]) -> str:
    words = re.findall(rf"{_KOREAN_TENS}|{_KOREAN_ONES}|[{_SINO}]", match[0])
    values = [_EAST.get(one, _KOREAN.get(one, 0)) for one in words]
    native = sum(value for one, value in zip(words, values, strict=True) if one in _KOREAN)
    sino = [value for one, value in zip(words, values, strict=True) if one not in _KOREAN]
    if not native and min(values) >= 100:
        return match[0]
    return f" {int(_eastern_value(sino) if sino else 0) + native} "


def _in_kana(match: re.Match[str]) -> str:
    words = re.findall(_KANA_WORD, match[0])
    return _eastern_value([_KANA[one] for one in words]) if len(words) > 2 else match[0]


def _eastern_value(values: Sequence[int]) -> str:
    total = section = digit = 0
    for value in values:
        if value < 10:
            digit = digit * 10 + value
        elif value < 10**4:
            section, digit = section + max(digit, 1) * value, 0
        else:
            total, section, digit = total + max(section + digit, 1) * value, 0, 0
    return f" {total + section + digit} "


def _written(value: Decimal) -> str:
    return f"{value:f}".rstrip("0").rstrip(".") if "." in f"{value:f}" else f"{value:f}"


def _value(values: Sequence[int]) -> int:
    """`two thousand one hundred` is 2100, `one four four` is 144."""
    if len(values) > 1 and all(0 <= value < 10 for value in values):
        return int("".join(map(str, values)))
    total = current = 0
    for value in values:
        if value < 0 or value >= 100:  # what multiplies: `a dozen` is below zero, because `twelve` does not
            current = max(current, 1) * abs(value)
            if value >= 1000:
                total, current = total + current, 0
        else:
            current += value
    return total + current


def _roman(text: str) -> int:
    values = [_LETTERS[one] for one in text]
    return sum(-one if one < after else one for one, after in zip(values, [*values[1:], 0], strict=True))
