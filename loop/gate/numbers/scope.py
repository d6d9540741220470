"""What a figure is of: the conditions and the GPU of a cited line, and whose time a measurement is.

A line on sparse products says nothing of dense ones, one on reads nothing of writes, one on a product nothing of all
products of its family; and what was measured of the run's kernels is no time of another program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_AXES: tuple[Mapping[str, str], ...] = (
    {"sparse": r"spars\w+|2:4|structured", "dense": r"dens\w+"},
    {"read": r"reads?|reading|loads?|loading|fetch\w*", "write": r"writes?|writing|written|stores?|storing"},
    {
        "each way": r"(?:per|each|one) (?:way|direction)|unidirectional|one-way",
        "both": r"bidirectional|both (?:ways|directions)",
    },
    {"boost": r"boost", "base": r"base(?= clock)"},
    {
        "tensor": r"tensor|matrix (?:cores?|units?)|wgmma|[hi]?mma|tl\.dot",
        "vector": r"fp32|fp64|cuda cores?|fma|alus?|vector|scalar",
    },
    {
        "fp4": r"n?v?fp4", "fp6": r"fp6", "fp8": r"fp8|e4m3|e5m2", "half": r"bf16|fp16|half precision|half-precision",
        "tf32": r"tf32", "fp32": r"fp32|single precision", "fp64": r"fp64|double precision", "int8": r"int8",
        "int4": r"int4",
    },
)  # fmt: skip
"""Words that exclude each other: a line that has one is no source of a sentence that has only another."""
_READ_AS = tuple(
    {label: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for label, words in axis.items()} for axis in _AXES
)
_MUST_BE_SAID = "sparse"
"""Without a word, a figure is taken for one of the other kind."""
_PER_SM = re.compile(r"^[\s\w]{0,24}?\b(?:per|an?|each|every)\s+(?:sm|multi-?processor)\b", re.IGNORECASE)
_SM = re.compile(r"\b(?:sms?|multi-?processors?)\b", re.IGNORECASE)
_OF_ALL = re.compile(
    r"\b(?:every|all|any|each|most|both|other|no)\s+(?:of\s+(?:the|these|those)\s+)?(?:[\w-]+\s+){0,3}?(?:gpus?|cards?|parts?|chips?"
    r"|accelerators?|products?|devices|generations?|hopper|ampere|ada|blackwell|volta|turing)\b"
    r"|\b(?:hopper|ampere|ada|blackwell|volta|turing|nvidia|datacent(?:er|re))\s+(?:gpus|cards|parts|chips|accelerators|products)\b",
    re.IGNORECASE,
)
"""What speaks of more than one product."""
THIS_ONE = re.compile(r"\b(?:this|its?|here|ours?|the (?:run|card|gpu|device)(?:'s)?)\b", re.IGNORECASE)
OTHER_PROGRAM = re.compile(
    r"(?<![\w.])(?:torch\.[\w.]+|[Pp]y[Tt]orch(?:'s)?|cu(?:DNN|BLAS|FFT|SPARSE|TENSOR|B)\w*|CUB|CUTLASS|[Ll]iger(?:-\w+)?|Apex"
    r"|[Ff]lash-?[Aa]ttention\S*|[Ii]nductor|TensorRT\S*|JAX|XLA|TVM|vLLM|xFormers|ThunderKittens|QuACK|TransformerEngine|DeepGEMM"
    r"|FlashInfer|Unsloth|Thrust|OneFlow|ONNX(?:Runtime)?|eager(?: mode| PyTorch)?"
    r"|[Tt]he (?:vendor|library|reference|competitor|framework)(?:'s)?(?: \w+)?|(?:an?other|any other|every other"
    r"|no other) (?:\w+ )?kernels?)(?!\w)"
)
"""Names of programs that the run did not write."""
_OWN = re.compile(
    r"\b(?:v\d+|parent|versions?|it|we|our|ours|this|kernel|launch|program|profile|receipt|here)\b", re.IGNORECASE
)


def _labels(text: str) -> list[frozenset[str]]:
    return [frozenset(label for label, words in axis.items() if words.search(text)) for axis in _READ_AS]


def same_conditions(said: str, clause: str, sentence: str, after: str) -> bool:
    """Whether a cited line may be a source of a number in a clause of a sentence; `after`: what follows the number."""
    if _PER_SM.match(after) and not _SM.search(said):
        return False
    for of_line, near, far in zip(_labels(said), _labels(clause), _labels(sentence), strict=True):
        spoken = near or far
        if of_line and spoken and not of_line & spoken:
            return False
        if of_line == {_MUST_BE_SAID} and _MUST_BE_SAID not in far:
            return False
    return True


def of_all(clause: str) -> bool:
    """Whether a clause speaks of all GPUs of a kind."""
    return bool(_OF_ALL.search(clause))


def of_other_program(before: str) -> bool:
    """Whether the words before a number give it to a program that is none of the run's: `torch.softmax takes`."""
    named = [match.end() for match in OTHER_PROGRAM.finditer(before)]
    return bool(named) and not _OWN.search(before[named[-1] :])
