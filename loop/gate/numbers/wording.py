"""Patterns of the words around a number: what they say that it counts, gains, uses or foretells."""

from __future__ import annotations

import re

from kbs.evidence.units import NUMBER

RATES = frozenset(
    {"bytes per second", "floating-point operations per second", "integer operations per second", "watts"}
)
"""Dimensions of specs, measurements and claims: a kernel does not choose such a value."""
HARDWARE = RATES | {"hertz", "multiprocessors", "links", "floating-point operations per byte"}
COUNTS = frozenset({"threads", "warps", "blocks", "registers", "barriers", "banks", "sectors"})
"""Dimensions of what a kernel chooses or counts, unless the text speaks of what the hardware has."""
FEWEST_SMS = 8
"""No GPU on the market has fewer."""
SMALL = 16
"""The largest count of things that needs no source."""
CHOSEN = 1024
"""The largest count of threads, warps, registers or blocks that a kernel is taken to choose."""
NEAR = 240
"""Characters before and after a number that are looked at."""
FORETOLD = frozenset({"percent", "seconds", "ratio", "registers", "threads", "warps", "blocks", "bytes", "cycles"})
"""Dimensions of what a rule may name as a limit."""


def _any(*words: str) -> re.Pattern[str]:
    """One of some words, whole, in any case."""
    return re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)


# --- parts of a GPU and units -----------------------------------------------------------------------------------------

PART = "|".join((
    r"(?:streaming\s+)?multi-?processors?", r"sms?", r"cus?", r"compute\s+units?", r"[gt]pcs?", r"gpcs?",
    r"(?:cuda|tensor|shader|matrix|[a-z]+\d+)\s+cores?", r"cores?", r"(?:warp\s+)?schedulers?",
    r"sub-?(?:partitions?|cores?)", r"(?:memory\s+|hbm\d*e?\s+|dram\s+)?(?:channels?|stacks?|controllers?)",
    r"l2\s+(?:slices?|partitions?)", r"slices", r"chiplets?", r"dies", r"xcds?", r"transistors", r"copy\s+engines?",
    r"load/store\s+units?", r"(?:fp|int|alu|sfu|tensor)\d*\s+(?:units?|pipes?|lanes?)", r"sfus?", r"alus?",
    r"hbm\d*e?", r"gpus?",
))  # fmt: skip
"""Parts of a GPU that can be counted."""
_LITTLE = (
    "(?:per|of|in|on|for|to|and|or|the|by|with|from|over|across|into|at|an?|each|every|is|are|than|as"
    r"|par|pro|por|je)\b"
)
_ADJECTIVES = rf"(?:(?!{_LITTLE})[A-Za-z][A-Za-z-]*\s+){{0,2}}"
PARTS_AFTER = re.compile(rf"^[\s-]*{_ADJECTIVES}(?:{PART})(?![\w-])", re.IGNORECASE)
PARTS_BEFORE = re.compile(
    rf"(?<![\w-])(?:{PART})\W{{0,4}}(?:count|number)?[\s:=|]*(?:is|are|was)?[\s:=~|]*$", re.IGNORECASE
)
PARTS = re.compile(rf"\b(?:{PART})\b", re.IGNORECASE)
PER_PART = re.compile(
    r"^[\s\w-]{0,40}?\b(?:per|(?:on|in)\s+an?|(?:on|in)\s+each|an?|each)\s+"
    r"(?:sm|multi-?processor|gpu|die|chip|device|card|core|scheduler)s?\b",
    re.IGNORECASE,
)
UNITS = "|".join((
    r"[kKMGTPE]?i?(?:B|b|FLOPS?|Flops|flops|OPS|Hz|hz|W|J|V)(?:/\w+|ps)?(?![\w])", r"[kKMGTPE]i?b(?![\w])",
    r"[KMGTPE]/s", r"/\s?s\b", r"[TGMKP](?![\w])",
    r"(?i:(?:kilo|mega|giga|tera|peta|exa|kibi|mebi|gibi|tebi)\w+|octets?|bytes?|bits?|flops?|hertz|watts?|joules?"
    r"|volts?|hundreds?|thousands?|[mbt]r?illions?|clocks?|clk|cycles?|(?:milli|micro|nano)?seconds?)",
))  # fmt: skip
UNIT_AFTER = re.compile(rf"^\s*[-/]?\s*{_ADJECTIVES}(?:{UNITS})")
UNIT_ALONE = re.compile(
    r"(?<![\w\d.)\]%^/*-])(?!(?:in|of|per|as|or|and|to|the|a|an|than|by|with|from|for|is|are|at|more|fewer|less|higher|lower"
    r"|unit|units|metric|peak|memory|dram|hbm|l2|achieved|effective|measured|sustained|total|some|many|no|unknown|copy"
    r"|read|write|rate|about|nominal|theoretical|cited|given|same|reported|actual|raw|absolute|its|these|those|this|that"
    r"|fp\d+|tf32|bf16|int8|tensor|into|not|between|value|values|mean|median|column|figure|figures)\b)"
    r"[^\W\d_]+[\s-]+([kKMGTPE]i?(?:B|b|FLOPS?|FLOP|Flop|flop)(?:/s|ps)\b|[MGT]B\s?/\s?s\b|[TGP]FLOPS\b|[MG]Hz\b)",
    re.IGNORECASE,
)
"""A unit of rates behind a word that is no number and that none of these explains."""
POWER = re.compile(r"\^\s?\(?-?$")
"""Before an exponent."""
THING = _any(
    r"an?\s+sm", r"sms?", r"(?:streaming\s+)?multi-?processors?", r"gpus?", r"device", r"card", r"chip", r"die",
    r"silicon", r"hopper", r"ampere", r"ada", r"blackwell", r"hbm\d*e?", r"dram", r"l2", r"l1", r"nvlink", r"pcie",
    r"register\s+file", r"memory\s+(?:bus|controller|channel|system)", r"tensor\s+cores?", r"warp\s+schedulers?",
)  # fmt: skip
"""Names of hardware."""
HAS = _any(
    r"limit(?:ed to|s)?", r"max(?:imum|imal)?", r"has", r"have", r"having", r"offers?", r"provides?", r"supports?",
    r"allows?", r"hosts?", r"hold(?:s|ing)?", r"contains?", r"comes? with", r"ships? with", r"features?", r"room for",
    r"available", r"capacity", r"in total", r"hardware", r"resident", r"peak", r"theoretical", r"delivers?",
    r"sustains?", r"serves?", r"gives?", r"fits?", r"built", r"equipped",
)  # fmt: skip
"""Words by which a sentence says what something has."""
USES = _any(
    r"us(?:es?|ed|ing)", r"tak(?:es?|ing|en)", r"need(?:s|ed|ing)?", r"require[sd]?", r"allocat\w+", r"keeps?", r"kept",
    r"reads?", r"writes?", r"written", r"loads?", r"loaded", r"stores?", r"stored", r"mov(?:es?|ed|ing)", r"spill\w*",
    r"launch(?:es|ed)?", r"stag\w+", r"buffers?", r"tiles?", r"choos\w+", r"runs?", r"blocks? of", r"fetch\w*",
    r"cop(?:y|ied|ies)", r"transfers?", r"each (?:thread|warp|block|program|row)",
    r"per (?:thread|block|program|row|warp)",
)  # fmt: skip
"""Words by which a sentence says what a kernel takes."""
KEPT_BY = re.compile(
    rf"(?:{THING.pattern})\s+(?:can\s+|may\s+)?(?:keeps?|holds?|takes?|hosts?|has|have)\s+(?:(?:up to|at most)\s+)?$",
    re.IGNORECASE,
)
"""Hardware of which the number behind is: `an SM keeps 64 warps`."""
A_CLOCK = re.compile(
    r"^[\s\w-]{0,40}?\b(?:an?\s+(?:clock|cycle|clk)|(?:per|each|every)\s+(?:clock|cycle|clk|second))\b", re.IGNORECASE
)
OF_THEM = re.compile(r"^\s+of\s+(?:them|these|those|it)\b", re.IGNORECASE)

AMONG_PARTS = re.compile(
    rf"^[^.;:,]{{0,80}}?\bin\s+(?:(?:all|total|whole)\s+)?(?:(?:streaming\s+)?multi-?processors|SMs|CUs|(?:{PART})(?<=s))\b",
    re.IGNORECASE,
)
"""What a count in other things is of: `two packs of cards in multiprocessors`."""
COUNTS_OUT = re.compile(
    r"\b(?:carr(?:y|ies)|has|have|holds?|counts?|bears?|boasts?|numbers?|comes? to|amounts? to|adds? up to|makes? up"
    r"|with)\b",
    re.IGNORECASE,
)
AS_MANY_PARTS = re.compile(
    rf"\bas\s+many\s+((?:[\w-]+\s+)?(?:{PART}))\s+as\s+(?:an?|the|there\s+are|one|your|my)\s+(?!(?:[\w-]+\s+)?(?:grid|device|gpu"
    rf"|card|chip|programs?|rows?|columns?|tiles?|blocks?|work|kernel|launch|problem|tensor|input|output|batch|profile)\b)\w",
    re.IGNORECASE,
)
"""A count of parts that is told by something else: `as many SMs as a year has weeks`."""
FILLS = re.compile(
    rf"\b(?:every|all|each|the\s+(?:whole|last|full))\b[^.;]{{0,40}}?\b(?:slots?|registers?|warps?|threads?|blocks?|bytes?|room"
    rf"|capacity|shared\s+memory|budget)\b[^.;]{{0,30}}?\bof\s+(?:an?|the|each|every|one|this)\s+(?:{PART})\b[^.;]{{0,30}}?"
    rf"\b(?:is|are|be|gets?)\s+(?:\w+\s+)?(?:taken|used|filled|full|occupied|exhausted|gone|spent|busy)\b"
    rf"|\b(?:fills?|filling|exhausts?|saturates?|uses?\s+up)\s+(?:(?:up|all|out)\s+)?(?:an?|the|each|every|one|this|all)\s+(?:[\w-]+\s+){{0,3}}?"
    rf"(?:{PART})\b|\b(?:an?|the|each|every|one)\s+(?:{PART})\s+(?:is|are)\s+(?:then\s+|now\s+)?(?:full|filled|exhausted)\b",
    re.IGNORECASE,
)
"""That a limit of hardware is reached: what is counted out before it is that limit."""

# --- gains ------------------------------------------------------------------------------------------------------------

TIMES = re.compile(r"^\s?(?:x|×|X)(?![\w]|\s?\d)|^\s?-?fold\b|^\s?times\b")
FACTOR = re.compile(r"^\s?(?:x|×|X|-?fold)")
GAIN = re.compile(
    r"^\s*(?:-?fold|x|×|times)?\s*(?:\w+\s+){0,2}?(?:faster|slower|quicker|speed-?ups?|higher|lower|better|worse|more"
    r"|less|fewer|gain|improvement|ahead|what|that\s+of|those\s+of|as\s+(?:fast|quick|much|many|high|good)"
    r"|the\s+(?:speed|rate|time|throughput|bandwidth|performance))\b",
    re.IGNORECASE,
)
GAIN_BEFORE = re.compile(
    r"\b(?:speed-?ups?|faster|slower|gains?|ratio|factor|improvement)\b[^.;]{0,30}?\b(?:of|by|:|=|is|was|a)?\s*$",
    re.IGNORECASE,
)
SPEEDUP_BEFORE = re.compile(
    r"\b(?:speed-?ups?\s+(?:of|by|is|was|=|:)|(?:faster|slower|quicker|better|worse)\s+by(?:\s+a\s+factor\s+of)?)\s*$",
    re.IGNORECASE,
)
SHARE = re.compile(r"^\s?/\s?(\d+)\s+(?:of|the)\b")
MEASURABLE = re.compile(
    r"^\s*(?:the|its|all|each|every)?\s*(?:\w+\s+){0,2}?(?:time|runtime|duration|cycles|instructions?|stalls?|peak|latency"
    r"|bandwidth|throughput|occupancy|issue slots|ceiling|roofline|warps?\s+(?:wait|stall|idle|sit)"
    r"|(?:what|that)\s+(?:\w+\s+){1,3}?(?:takes?|took|needs?|needed|costs?|spends?|spent))\b",
    re.IGNORECASE,
)
"""Of what a share is measured, and does not follow from the text of a kernel."""
MEASURED = frozenset({"seconds", "percent", "bytes per second"})
OF_VERSION = re.compile(
    r"\b(?:in|of|for|by)\s+v(\d{1,4})\b[^.;:]{0,60}$"
    r"|\bv(\d{1,4})(?:'s)?\s+(?:takes?|took|has|had|runs?|ran|needs?|needed|is|was|shows?|showed|reach(?:es|ed)"
    r"|gets?|got|spends?|spent)\b[^.;:]{0,40}$",
    re.IGNORECASE,
)
COMPARES = re.compile(
    r"\bv\d+\b.*\bv\d+\b|\b(?:parent|than|against|versus|vs|from|while|whereas|instead|now|here)\b", re.I
)
LEVEL = re.compile(r"\b(?:hbm|dram|(?:device|global|shared) memory|smem|l2|l1|nvlink|pcie|registers?)\b", re.IGNORECASE)
LEVELS = {"dram": "hbm", "device": "hbm", "global": "hbm", "smem": "shared"}
"""Level of the memory → as names of metrics begin; others are their own."""
SHAPE_AFTER = re.compile(r"^\s?[x×*]\s?(?:\d|[A-Z]\b)")

# --- what a number belongs to -----------------------------------------------------------------------------------------

_LINKS = "is|are|was|of|at|the|a|an|to|about|value|with|count|has|have|gives?|offers?|provides?|sustains?|reaches"
JOIN = re.compile(rf"^[\s:=~≈(\[,'\"|]*(?:(?:{_LINKS})\b[\s:=~≈('\"|]*){{0,4}}$", re.IGNORECASE)
"""Between the name of a metric of hardware and its value."""
LINK = re.compile(
    r"^[\s:=(~≈]*(?:(?:is|are|was|were|of|at|the|a|an|to|about|only|just|already|value|has|=)\b[\s:=(]*){0,4}$",
    re.IGNORECASE,
)
"""Between the name of a metric of a profile and its value."""
BEHIND = re.compile(r"^[\s(]*(?:of\b\s*)?(?:the\s+|its\s+)?$", re.IGNORECASE)
"""Between a value and the name of its metric."""
GENERIC = frozenset(
    {"wait", "barrier", "drain", "selected", "sleeping", "miscellaneous", "duration", "registers", "waves", "issued"}
)
"""Names of metrics that are also ordinary words."""
COMPARED = re.compile(
    r"(?:\b(?:above|below|over|under|exceeds?|exceeding|within|than|at least|at most|least|most|up to|by|to"
    r"|reach(?:es)?|beyond|past|near|towards?|from|between|improves?|gains?)|[<>≤≥]=?)\s*~?$",
    re.IGNORECASE,
)
COMPARED_AFTER = re.compile(
    r"^\s*(?:or (?:more|less|better|faster|slower|fewer)|faster|slower|better|worse|less|more|lower|higher)\b",
    re.IGNORECASE,
)
MODAL = _any("may", "might", "could", "can", "would", "if", "should", "risk", "unless", "when")
CLAUSE = re.compile(r"[,;:()]|\b(?:so|thus|hence|therefore|whereas|while|but|then|and here|ours?)\b|->|→|=>")

# --- names and references ---------------------------------------------------------------------------------------------

_NUMBERED = (
    "version|v|line|lines|L|step|iteration|attempt|section|figure|fig\\.|table|page|chapter|listing|equation|level|stage"
    "|phase|pass|variant|option|case|part|item|rule|note|method|loop|dimension|axis|dim|argument|cuda|triton|torch"
    "|pytorch|python|ptx|nvcc|gcc|driver|isa|capability|opset|issue|pr|priority|flashattention|attention|hopper"
    "|generation|gen|top|rev(?:ision)?|release|algorithm|technique|approach|bits?|index|column|row|id|rank|number|no\\."
    "|seed|ncu|compute|llvm|clang|nsight|cudnn|cublas|cutlass|ubuntu|linux|numpy|jax|xla|mlir|vllm"
)
NUMBERED = re.compile(rf"\b(?:{_NUMBERED})[\s-]*#?\s*(?:\d+(?:\.\d+)*\s*(?:,|-|to|and|or|\.\.+)\s*)*$", re.IGNORECASE)
"""Before the number of a version, a line, a step …"""
NAMES = re.compile(
    "|".join((
        r"(?:sm|compute|gfx|ltx|cc|cu|rtx|gtx|cuda|nvcc|py|cp)_?\d+\w*", r"m\d+n\d+k\d+\w*", r"[xvkB]\d{1,3}",
        r"(?:[usbf]|bf|fp|tf|int|uint|float|bfloat|complex|half|char|short|long|double)\d{1,3}(?:x\d{1,2})?\w*",
        r"e\dm\d\w*", r"[A-Z]{2,8}[A-Z0-9]*(?:\.[A-Z0-9]+)+", r"[a-z]{2,12}(?:\.[a-z0-9_]+)+", r"[ep]\d+",
    )),
    re.IGNORECASE,
)  # fmt: skip
"""Names of architectures, types and instructions."""
NUMBERED_NAME = re.compile(r"([xvkB])(\d{1,4})", re.IGNORECASE)
ARCHITECTURE = re.compile(r"(?:sm|compute)_?(\d{1,2})(\d)[a-z]?", re.IGNORECASE)
TOKEN = re.compile(
    r"(?P<name>[A-Za-zµ_§][\w§]*(?:[.:@][A-Za-z0-9_]+)*)"
    rf"|(?P<number>{NUMBER})(?P<more>(?:\.\d+)*)(?P<suffix>[kKMGT]i?(?![\w/]))?"
)
HIDDEN = re.compile(
    r"\d[ _-]?(?:[kKMGTP]i?B|[KMGTP]?FLOPS?|[kMG]Hz|SMs?)(?![a-z])"
    r"|(?:gbps|tbps|gbs|tbs|[gt]b_?(?:per_?)?s|g?flops|tflops|[gm]hz|bandwidth|sms|sm_?count)[ _=-]*\d{2,}",
    re.IGNORECASE,
)
"""A number with a unit of hardware inside a name."""
OF_LOG = re.compile(r"\b(?:the|experience|our) log\b|\b(?:log's|records?)\b|\blog/", re.IGNORECASE)
RULED = re.compile(r"[\s|:-]*-[\s|:-]*")
UNIT_IN_HEAD = re.compile(r"[(,\[]\s*[^()\s|]{1,12}\s*[)\]]?\s*\|")
ITEM = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s|\s*#")

# --- hedges -----------------------------------------------------------------------------------------------------------

_SIMILAR = r"similar (?:products?|gpus?|cards?|chips?)"
HEDGE_BEFORE = re.compile(
    r"(?:\b(?P<vague>(?:somewhere|something|anything|some place)\b[\w\s]{0,40}?|in the \w+ of|(?:close|near"
    r"|next) to|up ?wards of|north of"
    r"|south of|(?:just|slightly|a (?:bit|little|touch|hair)) (?:over|under|above|below|more than|less than|shy"
    r" of|short of))[\s:]*"
    r"|\b(?P<word>about|approximately|approx\.?|roughly|around|circa|ca\.|nearly|almost|some|typically|probably"
    rf"|presumably|likely|perhaps|maybe|an? estimated|estimated|assum(?:ed|ing)|{_SIMILAR})"
    r"(?:\s+(?:a|the|to|at|of|have|has|is))*[\s:]*|(?P<mark>[~≈]\s?)"
    r"|\b(?P<should>(?:should|might|may|could|must) (?:be|have))\s+(?:\w+\s+){0,3})$",
    re.IGNORECASE,
)
HEDGE_AFTER = re.compile(
    r"^[\s,(]*(?P<word>or so|or thereabouts|thereabouts|ish\b|plus or minus|plus/minus|approximately|roughly"
    r"|more or less|give or take"
    rf"|(?:on|like|as (?:on|in)) (?:a )?{_SIMILAR}|similar products?|i (?:think|believe)|presumably|probably)\b",
    re.IGNORECASE,
)
DOUBT = re.compile(
    r"\b(?:from memory|un(?:verified|confirmed|checked|sure|certain)|not (?:been |yet )*(?:verified|checked"
    r"|confirmed|sure|certain|looked up)"
    r"|(?:have|has|did|do|does|could)(?:n['’]t| not)(?: yet)? (?:verif|check|confirm|look(?:ed)? (?:it|this))\w*"
    r"|(?:an?|my|our|best|rough|educated) (?:\w+ )?(?:guess|guesstimate|estimate)|guess(?:ed|work)"
    r"|i (?:think|believe|guess|assume|suppose|recall|remember|doubt)|supposedly|reportedly|allegedly|ballpark"
    r"|to be (?:verified|confirmed|checked)|if i |(?:grain|pinch) of salt|hearsay|rumou?r\w*|second[- ]hand"
    r"|caveats?|sceptic\w*|skeptic\w*"
    r"|with (?:\w+ )?(?:caution|care|reserve|reservations?|suspicion)\b|cautious\w*|to (?:my|our) knowledge|as"
    r" far as (?:i|we|one)\b"
    r"|(?:nobody|no one|none of us|no-one) (?:here |ever |has |have |yet |really )*(?:tried|tested|checked"
    r"|verified|measured|confirmed|looked|knows?|saw|seen)"
    r"|(?:can|could|would)(?: ?not|n['’]t)? (?:be )?(?:vouch\w*|trust\w*|rel(?:y|ied)\b|swear|guarantee\w*)"
    r"|don['’]t (?:trust|rely|quote)|do not (?:trust|rely|quote)"
    r"|(?:is|are|was|were) said to|they say|one hears|claimed to|iirc|afaik|if memory serves|anyone's guess|who"
    r" knows|not authoritative|suspect)",
    re.IGNORECASE,
)
"""What says, in the same sentence or the next to it, that nobody looked a value up."""
DOUBT_OF_IT = re.compile(
    r"^\W*(?:(?:but|though|yet|however|and|still|perhaps|maybe|whether|of course)\W+)*"
    r"(?:this|that|it|which|these|those|both|(?:the|this|that) (?:\w+ )?(?:values?|figures?|numbers?|specs?|rates?"
    r"|bandwidth|capacity|lines?))\b[^.;]{0,40}?"
    r"\b(?:may|might|can|could|should|would|must|need|does|do|is|are|will)(?:n['’]t)?\b[^.;]{0,20}?"
    r"\b(?:hold|differ|vary|apply|deviate|wrong|different|off|otherwise|outdated|true|right|correct|exact|accurate|stale"
    r"|approximate|rough|similar|typical|optimistic|lower|higher|less|more|similar)\b",
    re.IGNORECASE,
)
"""A next sentence that takes back what this one says."""
HEDGE_ANYWHERE = _any(_SIMILAR)
