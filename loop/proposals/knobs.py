"""Which kinds of things differ between two kernels, and which of them a method changes.

The settings of a launch, the sizes of tiles, hints to the caches and settings of precision are told apart from the body
of the code, so that a second change shows under the name of the first. A kernel function that is new brings its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from evaluator.source.cpp_tokens import Kind as TokenKind
from evaluator.source.cpp_tokens import Token, lex
from loop.proposals import essence

Kind = Literal[
    "launch settings", "pipeline stages", "tile sizes", "cache hints", "precision settings", "numbers of the formula",
    "masks", "the code",
]  # fmt: skip
KINDS: tuple[Kind, ...] = (
    "launch settings", "pipeline stages", "tile sizes", "cache hints", "precision settings", "numbers of the formula",
    "masks", "the code",
)  # fmt: skip
_KEYWORDS: dict[str, Kind] = {
    **dict.fromkeys(("num_warps", "num_ctas", "maxnreg", "num_consumer_groups"), "launch settings"),
    "num_stages": "pipeline stages",
    **dict.fromkeys(("eviction_policy", "cache_modifier", "volatile"), "cache hints"),
    **dict.fromkeys(("allow_tf32", "input_precision", "max_num_imprecise_acc", "out_dtype"), "precision settings"),
}  # fmt: skip
_SIZE = re.compile(r"block|tile|rows|chunk|unroll", re.IGNORECASE)
_TILE = re.compile(r"[A-Z][A-Z0-9_]*|.*(?:block|tile|rows|chunk|unroll).*", re.IGNORECASE)

_CODE: tuple[Kind, ...] = ("the code", "tile sizes")
_OF_METHODS: dict[str, tuple[Kind, ...]] = {
    **dict.fromkeys(("launch_config",), ("launch settings", "pipeline stages", "tile sizes")),
    **dict.fromkeys(("cache_modifier_hint", "read_only_cache", "l2_persistence_window"), ("cache hints", "the code")),
    **dict.fromkeys(
        ("multi_stage_pipeline", "async_pipeline", "async_copy", "overlap_compute_memory", "intra_warpgroup_pipeline",
         "gemm_softmax_interleave", "tma_descriptor", "tma_bulk_copy"),
        ("pipeline stages", *_CODE)),
    **dict.fromkeys(
        ("register_pressure", "register_spill", "setmaxnreg", "warp_specialization", "pingpong_warpgroups",
         "cooperative_cluster", "distributed_smem", "tma_multicast", "persistent_kernel", "smem_register_spill",
         "cluster_launch_control"),
        ("launch settings", *_CODE)),
    **dict.fromkeys(
        ("mixed_precision", "tensor_core", "tf32_emulation", "fp8_fast_accumulation", "block_scaled_precision",
         "two_level_accumulation_promotion"),
        ("precision settings", *_CODE)),
    **dict.fromkeys(
        ("inline_ptx", "no_alias",
         "lop3_bit_manipulation", "cuda_graphs", "static_launch_graph", "stream_event", "fewer_syncs",
         "warp_shuffle_sync", "programmatic_dependent_launch"),
        ("the code",)),
    **dict.fromkeys(("mufu_ex2_softmax", "fma_fast_math", "strength_reduce"), ("numbers of the formula", "the code")),
    **dict.fromkeys(
        ("tiling_smem", "ilp_unroll_register_tile", "split_k", "stream_k", "data_layout", "tile_scheduler_swizzle",
         "bank_conflict", "epilogue_fusion", "loop_unroll"),
        _CODE),
    "thread_coarsening": ("launch settings", *_CODE),
    **dict.fromkeys(("branch_eliminate", "vectorized_access", "coalesced_access"), ("masks", *_CODE)),
    **dict.fromkeys(("kernel_fusion", "rewrite"), KINDS),
}  # fmt: skip
"""Method → the kinds of things that it changes; any other changes the code alone."""
_NEEDS: dict[str, tuple[Kind, ...]] = {
    "launch_config": ("launch settings", "pipeline stages", "tile sizes"),
    "multi_stage_pipeline": ("pipeline stages", "the code"),
    **dict.fromkeys(
        ("thread_coarsening", "tiling_smem", "ilp_unroll_register_tile", "register_pressure", "register_spill",
         "split_k", "data_layout", "smem_register_spill"),
        ("launch settings", "tile sizes", "the code")),
    "cache_modifier_hint": ("cache hints", "the code"),
}  # fmt: skip
"""Method → kinds of which at least one must change for it to have been made; any other needs a change of the code or of
a setting that is its own alone."""
_SPOKEN: tuple[tuple[str, Kind], ...] = (
    (r"\b(?:more|fewer|twice|double|half|\d+)\s+(?:as many\s+|the\s+)?warps\b", "launch settings"),
    (
        r"\bnum_?warps\b|\bwarps per (?:block|program|CTA)\b|\bnumber of warps\b|\bmaxnreg\b|\bnum_ctas\b",
        "launch settings",
    ),
    (r"\bnum_?stages\b|\bpipeline stages\b|\bnumber of stages\b", "pipeline stages"),
    (r"\beviction_?\s?polic(?:y|ies)\b|\bcache_?\s?modifiers?\b|\bevict_(?:first|last)\b", "cache hints"),
    (
        r"\ballow_tf32\b|\binput_precision\b|\b(?:to|in|use) (?:fp16|bf16|half precision|tf32|fp8)\b",
        "precision settings",
    ),
    (r"\bBLOCK(?:_\w+)?\b(?=.{0,20}?\d)|\b(?:block|tile) size\b", "tile sizes"),
)
"""How sentences name settings."""
_SIGNS: dict[str, str] = {
    "exp2": "mufu_ex2_softmax", "dot": "tensor_core", "dot_scaled": "block_scaled_precision", "mma_sync": "tensor_core",
    "inline_asm_elementwise": "inline_ptx", "asm": "inline_ptx", "make_tensor_descriptor": "tma_descriptor",
    "TensorDescriptor": "tma_descriptor", "rsqrt": "strength_reduce", "make_block_ptr": "coalesced_access",
    "multiple_of": "vectorized_access",
    "max_contiguous": "vectorized_access", "float4": "vectorized_access", "__shfl_xor_sync": "warp_shuffle",
    "__shfl_down_sync": "warp_shuffle", "memcpy_async": "async_copy", "atomic_add": "atomic_optimize",
    "CUDAGraph": "cuda_graphs", "static_range": "loop_unroll", "__ldg": "read_only_cache",
}  # fmt: skip
"""A name of the code that is the sign of a method."""
_CLOSE: dict[str, tuple[str, ...]] = {
    "vectorized_access": ("coalesced_access", "data_layout", "branch_eliminate"),
    "coalesced_access": ("vectorized_access", "tma_descriptor", "tiling_smem", "data_layout"),
    "tensor_core": ("tiling_smem", "split_k", "stream_k", "mixed_precision", "tf32_emulation", "fp8_fast_accumulation"),
    "warp_shuffle": ("reduction", "warp_shuffle_sync", "fewer_syncs"),
    "async_copy": ("async_pipeline", "multi_stage_pipeline", "overlap_compute_memory", "tma_bulk_copy"),
    "atomic_optimize": ("split_k", "stream_k", "reduction", "warp_aggregated_atomics"),
    "loop_unroll": ("ilp_unroll_register_tile", "thread_coarsening"),
    "mufu_ex2_softmax": ("fma_fast_math", "inline_ptx"),
    "strength_reduce": ("fma_fast_math", "inline_ptx", "mufu_ex2_softmax"),
    "inline_ptx": ("mufu_ex2_softmax", "cache_modifier_hint", "async_copy", "tensor_core", "vectorized_access"),
    "tma_descriptor": ("tma_bulk_copy", "tma_multicast", "async_copy"),
}
"""Method → methods that may have its signs as a part of them."""
_ANOTHER = re.compile(
    r"\b(?:and|also|plus|as well|besides|together with|while (?:we are )?at it|in addition|then|along with)\b"
    r"|[;&+]|\.\s",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:not|no|without|nothing|keep(?:s|ing|t)?|leav\w+|left|un(?:changed|touched)|same|as (?:it|they) (?:is|are)"
    r"|stays?|remain\w*|still|only|instead of|rather than|never|with)\b",
    re.IGNORECASE,
)


_BECOMES = re.compile(
    r"\b(\w+)`?\s+(?:(?:goes|is|are|raised|lowered|set|moves?|grows?|falls?)\s+)*(?:from\s+`?\d+`?\s+)?(?:to|becomes)\s+`?(\d+)\b"
    r"(?!\s?%|\.\d)"
)


@dataclass(frozen=True)
class Differs:
    """A kind of thing that differs, with an example."""

    kind: Kind
    example: str


def owned(methods: Sequence[str], language: str) -> set[Kind]:
    """What the declared methods change together."""
    return {kind for method in methods for kind in _owned(method, language)}


def _owned(method: str, language: str) -> tuple[Kind, ...]:
    # In Triton a hint is an argument; in CUDA it is another instruction.
    hint = method == "cache_modifier_hint" and language == "python"
    return ("cache hints",) if hint else _OF_METHODS.get(method, ("the code",))


def needed(methods: Sequence[str], language: str) -> set[Kind]:
    """What must differ in one of its kinds for the declared methods to have been made."""
    found: set[Kind] = set()
    for method in methods:
        own = set(_owned(method, language))
        found |= own & set(_NEEDS[method]) if method in _NEEDS else own - {"tile sizes"}
    return found


def signs(before: str, after: str, methods: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(name, method) of each sign of a method that is new in the code and belongs to no declared method."""
    old, new = (set(re.findall(r"[A-Za-z_]\w*", text)) for text in (before, after))
    for name, method in _SIGNS.items():
        whole = {"kernel_fusion", "rewrite"} & set(methods)
        if name in new - old and not whole and method not in methods and not set(_CLOSE.get(method, ())) & set(methods):
            yield name, method


def spoken(text: str) -> Iterator[Differs]:
    """Settings that a sentence says are changed beside something else: `and also raise num_warps`."""
    parts = _ANOTHER.split(text)
    for part in parts[1:]:
        for pattern, kind in _SPOKEN:
            match = re.search(pattern, part, re.IGNORECASE)
            if match and not _NOT.search(part):
                yield Differs(kind, match[0])


def told(text: str, code: str) -> Iterator[tuple[str, str]]:
    """(name, value) of each name of the code that a sentence says gets a value: `BLOCK from 1024 to 2048`."""
    for match in _BECOMES.finditer(text):
        if re.search(rf"(?<!\w){re.escape(match[1])}(?!\w)", code) and ("_" in match[1] or match[1].isupper()):
            yield match[1], match[2]


def differing(before: str, after: str, language: str) -> tuple[Differs, ...]:
    """What differs between two kernels of one language; none if one of them cannot be read."""
    if language == "cuda":
        pair = [_cuda(lex(text).tokens) for text in (before, after)]
    else:
        try:
            trees = [ast.parse(text) for text in (before, after)]
            both = essence.names(trees[0]) & essence.names(trees[1])
            pair = [_python(essence.essential(tree, both)) for tree in trees]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ()
    old, new = pair
    both = old.functions & new.functions
    found = []
    for kind in KINDS:
        one, other = old.of(kind, both), new.of(kind, both)
        if kind == "numbers of the formula":  # one that takes the place of another; one more belongs to the code
            only, fresh = set(one) - set(other), set(other) - set(one)
            one, other = (sorted(only), sorted(fresh)) if only and fresh else ([], [])
        if kind == "masks":  # accesses without one, in a kernel all of whose accesses had one
            one, other = [], [said for said in other if not one and old.masked]
        if kind == "tile sizes":  # a constant that is new belongs to the code that needs it
            names = {_named(x) for x in one} & {_named(x) for x in other}
            one, other = ([x for x in several if _named(x) in names or "autotune" in x[1]] for several in (one, other))
        if one != other:
            found.append(Differs(kind, next(iter(sorted(set(one) ^ set(other), key=str)), ("",))[-1][:80]))
    return tuple(found)


def folded(node: ast.AST) -> ast.AST:
    """Arithmetic of constants as the constant that it is: `1 << 10`, `"float" + "16"`."""
    if not (
        isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)
    ):
        return node
    left, right = node.left.value, node.right.value
    if isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add):
        return ast.copy_location(ast.Constant(left + right), node)
    if type(left) is not int or type(right) is not int or abs(left) > 2**40 or not 0 <= right <= 2**40:
        return node
    made = {
        ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right,
        ast.LShift: left << right if right < 64 else None, ast.FloorDiv: left // right if right else None,
    }.get(type(node.op))  # fmt: skip
    return node if made is None else ast.copy_location(ast.Constant(made), node)


def folded_strings(text: str) -> tuple[str, ...]:
    """Strings that a Python text puts together from others."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    made = (folded(node) for node in ast.walk(tree) if isinstance(node, ast.BinOp))
    return tuple(one.value for one in made if isinstance(one, ast.Constant) and isinstance(one.value, str))


def _named(setting: tuple[str, str]) -> tuple[str, str]:
    return setting[0], setting[1].partition("=")[0]


@dataclass(frozen=True)
class _Parts:
    functions: set[str]
    """Functions of the device."""
    settings: list[tuple[Kind, str, str]]
    """(kind, function that it is of, or empty, setting)"""
    code: list[str]
    masked: bool = False
    """Whether accesses have masks."""

    def of(self, kind: Kind, functions: set[str]) -> list[tuple[str, str]]:
        """The settings of a kind, of functions that both kernels have."""
        if kind == "the code":
            return [("", one) for one in self.code]
        return sorted(
            (where, said) for one, where, said in self.settings if one == kind and (not where or where in functions)
        )


class _Stripped(ast.NodeTransformer):
    """Takes settings out of a program, and notes them."""

    def __init__(self, kernels: set[str]) -> None:
        self.kernels = kernels
        self.settings: list[tuple[Kind, str, str]] = []
        self.inside = ""
        self.masked = False
        self.wide: set[str] = set()
        """Names of tensors of addresses or places, made by `tl.arange`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        return folded(self.generic_visit(node))

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, float) and node.value not in (0.0, 1.0):
            self.settings.append(("numbers of the formula", "", repr(node.value)))
            return ast.copy_location(ast.Constant("a number"), node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        tuned = [one for one in node.decorator_list if re.search(r"\b(?:autotune|heuristics)\b", ast.unparse(one))]
        self.settings += [("tile sizes", node.name, f"autotune={ast.unparse(one)}") for one in tuned]
        node.decorator_list = [one for one in node.decorator_list if one not in tuned]
        outer, self.inside = self.inside, node.name if node.name in self.kernels else self.inside
        made = self.generic_visit(node)
        self.inside = outer
        return made

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        launched = _launched(node)
        called = ast.unparse(node.func) if not launched else ""
        where = launched or self.inside
        if self.inside and called in ("tl.load", "tl.store"):
            named = {keyword.arg for keyword in node.keywords}
            whole = len(node.args) > (1 if called == "tl.load" else 2)
            if named & {"mask", "boundary_check"} or whole:
                self.masked = True
            elif set(re.findall(r"\w+", ast.unparse(node))) & {*self.wide, "arange"}:
                self.settings.append(("masks", self.inside, f"{ast.unparse(node)[:60]} without a mask"))
        kept = []
        for keyword in node.keywords:
            name, value = keyword.arg or "", ast.unparse(keyword.value)
            kind = _KEYWORDS.get(name)
            if kind is None and launched and _TILE.fullmatch(name):
                kind = "tile sizes"
            if kind is None:
                kept.append(keyword)
            else:
                self.settings.append((kind, where, f"{name}={value}"))
        node.keywords = kept
        if called.endswith("Config") and node.args and isinstance(node.args[0], ast.Dict):
            self.settings.append(("tile sizes", "", ast.unparse(node.args[0])))
            node.args = node.args[1:]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        number = isinstance(node.value, ast.Constant) and isinstance(node.value.value, int)
        if len(names) == 1 and number and (names[0].isupper() or _SIZE.search(names[0])):
            self.settings.append(("tile sizes", "", f"{names[0]}={ast.unparse(node.value)}"))
            return ast.Pass()
        kind = _KEYWORDS.get(names[0].lower()) if len(names) == 1 else None
        if kind is not None and isinstance(node.value, ast.Constant):
            self.settings.append((kind, "", f"{names[0]}={ast.unparse(node.value)}"))
            return ast.Pass()
        return node


def _launched(node: ast.Call) -> str:
    """The kernel that a call launches: `kernel[grid](…)`; empty for any other call."""
    return ast.unparse(node.func.value) if isinstance(node.func, ast.Subscript) else ""


def _python(tree: ast.Module) -> _Parts:
    kernels = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(one) for one in node.decorator_list)
    }
    stripped = _Stripped(kernels)
    for node in ast.walk(tree):  # docstrings are no code
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            said = node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
            node.body = (node.body[1:] if said else node.body) or [ast.Pass()]
    stripped.wide = _made_by_arange(tree)
    made = stripped.visit(tree)
    code = [ast.dump(one) for one in made.body if not isinstance(one, ast.Pass)]
    return _Parts(kernels, stripped.settings, code, stripped.masked)


def _made_by_arange(tree: ast.Module) -> set[str]:
    """Names whose values follow from `tl.arange`: accesses at such places are those of a tile."""
    found: set[str] = set()
    given = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    for _ in range(4):
        for node in given:
            value = ast.unparse(node.value)
            if "arange" in value or found & set(re.findall(r"\w+", value)):
                found |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    return found


def _cuda(tokens: Sequence[Token]) -> _Parts:
    functions, settings, code = set[str](), list[tuple[Kind, str, str]](), list[str]()
    at, inside = 0, ""
    while at < len(tokens):
        token = tokens[at]
        if token.kind is TokenKind.NAME and token.text == "__launch_bounds__":
            end = _closing(tokens, at + 1)
            settings.append(("launch settings", inside, " ".join(one.text for one in tokens[at:end])))
            at = end
            continue
        define = (
            re.fullmatch(r"define\s+(\w+)\s+(\d+)", token.text.strip()) if token.kind is TokenKind.DIRECTIVE else None
        )
        if define:
            settings.append(("tile sizes", "", f"{define[1]}={define[2]}"))
        elif token.kind is TokenKind.NAME and token.text == "__global__":
            inside = _function(tokens, at)
            functions.add(inside)
            code.append(token.text)
        else:
            code.append(token.text)
        at += 1
    return _Parts(functions, settings, [" ".join(code)])


def _function(tokens: Sequence[Token], at: int) -> str:
    """The name of the function that is declared here: the first that parameters follow, and no attribute's."""
    while at + 1 < len(tokens) and tokens[at].text not in ("{", ";"):
        called = tokens[at].kind is TokenKind.NAME and tokens[at + 1].text == "("
        if called and not tokens[at].text.startswith("__"):
            return tokens[at].text
        at = _closing(tokens, at + 1) if called else at + 1
    return ""


def _closing(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place].text == "(") - (tokens[place].text == ")")
        if depth == 0:
            return place + 1
    return len(tokens)
