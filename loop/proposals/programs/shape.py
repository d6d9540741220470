"""What of a kernel's shape differs from its parent: loops, accesses, the grid, calls. Where nothing of it does, only
arithmetic on values was changed, and that is no tiling, fusion or recomputation, whatever it is called."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set

from evaluator.source.cpp_tokens import Kind, lex
from loop.proposals.programs import essence
from loop.proposals.programs.cuda_essence import live

_FORMULAS = frozenset({
    "strength_reduce", "fma_fast_math", "mufu_ex2_softmax", "mixed_precision", "tf32_emulation",
    "fp8_fast_accumulation", "block_scaled_precision", "two_level_accumulation_promotion", "inline_ptx",
    "lop3_bit_manipulation", "kernel_fusion", "rewrite", "branch_eliminate", "tensor_core", "no_alias",
    "register_pressure", "register_spill",
})  # fmt: skip
"""Methods that may be nothing but other arithmetic on values."""
_SHOWS: dict[str, tuple[str, ...]] = {
    "online_recomputation": ("loops", "accesses"),
    **dict.fromkeys(
        ("persistent_kernel", "split_k", "stream_k", "tile_scheduler_swizzle"), ("programs", "grid", "loops")
    ),
    "loop_unroll": ("loops", "accesses"),
    "vectorized_access": ("accesses", "calls", "loops", "programs"),
    **dict.fromkeys(("warp_shuffle", "reduction", "fewer_syncs", "warp_shuffle_sync"), ("calls", "loops", "accesses")),
}
"""Method → what of the shape differs if it was made, at least one of them."""
_MATH_NAMES = (
    "sqrt rsqrt exp exp2 log log2 fma pow rcp fdiv div_rn abs square reciprocal sqrtf rsqrtf expf exp2f logf"
    " log2f powf fmaf"
    " __expf __logf __fdividef __frcp_rn __fsqrt_rn __fdiv_rn fabsf sqrt_rn math libdevice"
)
_MATH = frozenset(_MATH_NAMES.split())
_LONGEST = 10_000
"""Characters of an access with its constants written out: past that, a file makes them grow on purpose."""
_TYPES = frozenset({"float", "double", "const", "constexpr", "half", "auto", "static"})


def shape(text: str, language: str) -> dict[str, Counter[str]] | None:
    """Kind → the things of that kind in a program; None if it cannot be read."""
    if language == "cuda":
        return _cuda(text)
    try:
        tree = ast.parse(text)
        tree = essence.essential(tree, essence.names(tree))  # what calls a function stands in no file of the run
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not any(isinstance(node, ast.FunctionDef) and _on_device(node) for node in ast.walk(tree)):
        return None
    found: dict[str, Counter[str]] = {kind: Counter() for kind in ("loops", "accesses", "programs", "grid", "calls")}
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.While):
            found["loops"][ast.unparse(node.iter if isinstance(node, ast.For) else node.test)] += 1
        elif isinstance(node, ast.If):
            found["loops"]["if"] += 1
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            if isinstance(node.func, ast.Subscript):
                found["grid"][ast.unparse(node.func.slice)] += 1
            elif name in ("load", "store") or name.startswith("atomic_"):
                given = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "mask")]
                found["accesses"][" ".join([name, *map(ast.unparse, given)])] += 1
            elif name in ("program_id", "num_programs"):
                found["programs"][ast.unparse(node)] += 1
            elif name not in _MATH:
                found["calls"][name] += 1
    return found


def _on_device(function: ast.FunctionDef) -> bool:
    return any("jit" in ast.unparse(one) for one in function.decorator_list)


def _cuda(text: str) -> dict[str, Counter[str]]:
    tokens = live(lex(text).tokens)
    spelled = [token.text for token in tokens]
    constants = _constants(spelled)
    found: dict[str, Counter[str]] = {kind: Counter() for kind in ("loops", "accesses", "programs", "grid", "calls")}
    for at, token in enumerate(tokens):
        following = spelled[at + 1 : at + 2]
        if token.kind is Kind.DIRECTIVE:
            found["loops"][token.text.strip()] += "pragma" in token.text
        elif token.text in ("for", "while", "if"):
            found["loops"][_inside(spelled, at + 1)] += 1
        elif token.text == "[":
            found["accesses"][f"{spelled[at - 1]} {_written_out(_inside(spelled, at), constants)}"] += 1
        elif spelled[at : at + 3] == ["<"] * 3:
            found["grid"][" ".join(spelled[at + 3 : at + 40]).partition(">")[0]] += 1
        elif token.text in ("blockIdx", "gridDim", "threadIdx", "blockDim"):
            found["programs"][" ".join(spelled[at : at + 3])] += 1
        elif token.kind is Kind.NAME and following == ["("] and token.text not in _MATH | _TYPES:
            found["calls"][token.text] += 1
    return found


def _constants(spelled: Sequence[str]) -> dict[str, str]:
    """What stands behind the names of a `constexpr`: a longer row in shared memory may be a change of one alone."""
    found: dict[str, str] = {}
    for at, word in enumerate(spelled):
        if word == "constexpr" and "=" in (rest := spelled[at : at + 8]) and ";" in spelled[at:]:
            equal = at + rest.index("=")
            found[spelled[equal - 1]] = " ".join(spelled[equal + 1 : spelled.index(";", equal)])
    return found


def _written_out(text: str, constants: Mapping[str, str]) -> str:
    """A text with the values of constants in the place of their names."""
    for _ in constants:
        wider = " ".join(f"( {constants[word]} )" if word in constants else word for word in text.split())
        if wider == text or len(wider) > _LONGEST:
            break
        text = wider
    return text


def _inside(spelled: Sequence[str], at: int) -> str:
    """What stands between the bracket at a place and the one that closes it."""
    depth = 0
    for place in range(at, len(spelled)):
        depth += (spelled[place] in ("(", "[")) - (spelled[place] in (")", "]"))
        if depth == 0:
            return " ".join(spelled[at + 1 : place])
    return ""


def another(methods: Sequence[str], before: str, after: str, language: str, kinds: Set[str]) -> str:
    """Why a change is none of the declared methods, by its shape; empty if it may be one.

    `kinds`: what differs, as `knobs.differing` tells it.
    """
    old, new = shape(before, language), shape(after, language)
    if old is None or new is None or not kinds & {"the code", "numbers of the formula"}:
        return ""
    differs = {kind for kind, things in new.items() if things != old[kind]}
    if not differs and kinds <= {"the code", "numbers of the formula"} and not _FORMULAS & set(methods):
        return "only arithmetic on values differs"
    for method in methods:
        wanted = _SHOWS.get(method)
        if wanted and not differs & set(wanted) and kinds <= {"the code", "numbers of the formula"}:
            return f"the {', '.join(wanted)} are the parent's"
    return ""


def splits_a_sum(before: str, after: str, language: str) -> str:
    """The buffer of partial results that a kernel has and its parent does not: what one kernel of the file writes and
    another one, or the host, adds; empty for none. That is a split of a sum, whatever it is called."""
    old, new = (_partial(text, language) for text in (before, after))
    return "" if old else new


def _partial(text: str, language: str) -> str:
    if language == "cuda":
        spelled = " ".join(token.text for token in live(lex(text).tokens))
        launches = re.findall(r"(\w+) < < < [^;]*? > > > \( ([^;]*) \) ;", spelled)
        made = set(re.findall(r"cudaMalloc(?:Async)? \( (?:\( void \* \* \) )?& (\w+)", spelled))
        made |= set(re.findall(r"(\w+) = torch : : (?:empty|zeros)\w*", spelled))
        calls = [(name, set(re.findall(r"\w+", given))) for name, given in launches]
        return next((one for one in sorted(made) if len({name for name, given in calls if one in given}) > 1), "")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    made = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        and re.search(r"(?:^|\.)(?:new_)?(?:empty|zeros|full)(?:_like)?$", ast.unparse(node.value.func))
        for target in node.targets
        if isinstance(target, ast.Name)
    }  # fmt: skip
    calls, added = list[tuple[str, set[str]]](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            calls.append((ast.unparse(node.func.value), {one.id for one in given if isinstance(one, ast.Name)}))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
            "sum",
            "add",
            "einsum",
            "mean",
        ):
            added |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    read = {name for name, given in calls for one in given if one in made}
    for one in sorted(made):
        kernels = {name for name, given in calls if one in given}
        if len(kernels) > 1 or (kernels & read and one in added):
            return str(one)
    return ""
