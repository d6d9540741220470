"""Which kinds of things each method changes in a kernel, and which names of the code are signs of a method."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

Kind = Literal[
    "launch settings", "pipeline stages", "tile sizes", "cache hints", "precision settings", "numbers of the formula",
    "masks", "order of tiles", "the code",
]  # fmt: skip
KINDS: tuple[Kind, ...] = (
    "launch settings", "pipeline stages", "tile sizes", "cache hints", "precision settings", "numbers of the formula",
    "masks", "order of tiles", "the code",
)  # fmt: skip
_CODE: tuple[Kind, ...] = ("the code", "tile sizes")
_ORDER: tuple[Kind, ...] = ("order of tiles", *_CODE)
_OF_METHODS: dict[str, tuple[Kind, ...]] = {
    **dict.fromkeys(("launch_config",), ("launch settings", "pipeline stages", "tile sizes")),
    **dict.fromkeys(("cache_modifier_hint", "read_only_cache", "l2_persistence_window"), ("cache hints", "the code")),
    **dict.fromkeys(
        ("multi_stage_pipeline", "async_pipeline", "async_copy", "overlap_compute_memory", "intra_warpgroup_pipeline",
         "gemm_softmax_interleave", "tma_descriptor", "tma_bulk_copy"),
        ("pipeline stages", *_CODE)),
    **dict.fromkeys(
        ("register_pressure", "register_spill", "setmaxnreg", "warp_specialization", "pingpong_warpgroups",
         "smem_register_spill"),
        ("launch settings", *_CODE)),
    **dict.fromkeys(
        ("cooperative_cluster", "distributed_smem", "tma_multicast", "persistent_kernel", "cluster_launch_control",
         "thread_coarsening"),
        ("launch settings", *_ORDER)),
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
         "epilogue_fusion"),
        _ORDER),
    "reduction": ("order of tiles", "the code"),
    **dict.fromkeys(("bank_conflict", "loop_unroll"), _CODE),
    **dict.fromkeys(("branch_eliminate", "vectorized_access"), ("masks", *_CODE)),
    "coalesced_access": ("masks", *_ORDER),
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
IS_METHOD: dict[Kind, str] = {
    "launch settings": "launch_config", "pipeline stages": "multi_stage_pipeline", "cache hints": "cache_modifier_hint",
    "order of tiles": "tile_scheduler_swizzle",
}  # fmt: skip
"""Kind → the method that a change of it is where no declared method owns it."""
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
