"""Whether a candidate computed with the library that it should replace: names of kernels as profilers print them, and
the part of the work that they did."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.correctness import library_use as library
from evaluator.receipt.findings import DeviceKernel, LibraryOperation
from evaluator.scan.hazards import Severity

LIBRARY = {
    # cuBLAS and cuBLASLt
    "ampere_sgemm_128x64_tn",
    "ampere_fp16_s16816gemm_fp16_256x128_ldg8_f2f_stages_32x3_tn",
    "ampere_bf16_s1688gemm_bf16_128x128_ldg8_f2f_stages_32x1_nn",
    "ampere_h16816gemm_128x128_ldg8_stages_32x5_tn",
    "volta_sgemm_128x32_sliced1x4_tn",
    "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn",
    "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn",
    "maxwell_sgemm_128x64_nn",
    "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNN",
    "nvjet_tst_192x192_64x4_1x2_h_bz_coopA_NTT",
    "void gemmk1_kernel<int, float, 256, 5, false, false, false, false, cublasGemvTensorStridedBatched<float const> >",
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true, false, false>",
    "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, cublasGemvParamsEx<int> >",
    "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensorStridedBatched<float const> > >",
    "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true, cublasGemvTensorStridedBatched<float const> >",
    "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_256x128_16x3_tn_align4>(cutlass_80_tensorop::Params)",
    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>",
    # cuDNN
    "void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float, true, 1>(float, float, cudnnTensorStruct)",
    "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_warpsize2x2x1",
    "ampere_scudnn_128x64_relu_xregs_large_nn_v1",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128_4x1x1_kernel0_0",
    "void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, false>(int, cudnn::reduced_divisor)",
    # ATen
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float> > >",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, float const*)",
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>",
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>(float*, float const*)",
    "void (anonymous namespace)::softmax_warp_backward<c10::Half, c10::Half, float, 7, true, false>",
    "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel>",
    "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<at_cuda_detail::cub::DeviceRadixSortPolicy<float> >",
    "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent>",
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::half_t> >",
    "void pytorch_flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<64, 64, 256, 4, false> >",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)",
    "void regular_fft_factor<1024u, EPT<4u>, CB::TRANSPOSE>(kernel_args_t<unsigned int, float>)",
    "void vector_fft<256u, EPT<16u>, 8u, (padding_t)6, (twiddle_t)0>",
    # flash-attn, FlashInfer, cuSPARSE
    "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2> > >",
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false> >",
    "void flashinfer::BatchPrefillWithPagedKVCacheKernel<(flashinfer::MaskMode)1, true>",
    "void cusparse::csrmm_alg2_kernel<cusparse::CsrMMPolicy<128u, false, false, 8> >",
    # TorchInductor
    "triton_poi_fused_add_relu_0",
    "triton_red_fused__softmax_1",
    "triton_per_fused_native_layer_norm_2",
    "triton_tem_fused_mm_0",
    "triton_for_fused_0",
}  # fmt: skip
OWN = {
    "softmax_kernel",
    "_layer_norm_fwd_fused",
    "matmul_kernel_persistent",
    "_attn_fwd",
    "flash_fwd_kernel",
    "_flash_bwd_preprocess",
    "fused_fmha_forward",
    "hopper_gemm_kernel",
    "ampere_softmax",
    "sgemm_128x64",
    "triton_softmax_kernel",
    "triton_mm_kernel",
    "softmax_warp_forward",
    "void gemm_kernel<128, 128, 32>(float const*, float const*, float*, int, int, int)",
    "void sgemm_tiled(float*, float*, float*, int)",
    "void wgmma_gemm<128, 256, 64, 4>(CUtensorMap_st, CUtensorMap_st, __nv_bfloat16*)",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int>, Collective> >",
    "void cutlass::Kernel2<cutlass::gemm::kernel::Gemm<cutlass::gemm::threadblock::MmaMultistage> >",
    "(anonymous namespace)::reduce_rows(float const*, float*, int)",
    "void rmsnorm_kernel<c10::Half>(c10::Half const*, c10::Half*, int, float)",
    "conv2d_implicit_gemm_kernel",
    "nvjet",
    "fft_radix2",
    "Memcpy DtoD (Device -> Device)",
    "Memset (Device)",
}


def kernel(name: str, microseconds: float = 1.0, calls: int = 1) -> dict[str, Any]:
    """A kernel as a worker tells it."""
    return {"name": name, "calls": calls, "microseconds": microseconds}


@pytest.mark.parametrize("name", sorted(LIBRARY))
def test_a_kernel_of_a_library_is_recognised(name: str) -> None:
    assert library.device_kernels([kernel(name)])[0].library


@pytest.mark.parametrize("name", sorted(OWN))
def test_a_kernel_of_the_candidates_is_not(name: str) -> None:
    assert not library.device_kernels([kernel(name)])[0].library


def test_names_are_cut_and_numbers_are_held_to_their_range() -> None:
    (found,) = library.device_kernels([kernel("x" * 500, -1.0, 0)])
    assert (len(found.name), found.calls, found.microseconds) == (200, 1, 0.0)
    assert library.device_kernels([kernel("x", float("nan"))])[0].microseconds == 0.0


# --- operators --------------------------------------------------------------------------------------------------------


def operator(name: str, size: int, calls: int = 1) -> dict[str, Any]:
    """An operator as a worker tells it."""
    return {"name": name, "calls": calls, "bytes": size}


def test_shares_are_of_the_problems_bytes_and_at_most_one() -> None:
    found = library.operations([operator("aten::mm", 500), operator("aten::sum", 4000, 3)], 1000)
    assert found == [
        LibraryOperation(name="aten::mm", calls=1, share=0.5),
        LibraryOperation(name="aten::sum", calls=3, share=1.0),
    ]


def test_a_problem_without_bytes_divides_by_nothing() -> None:
    assert library.operations([operator("aten::mm", 5), operator("aten::mul", 0)], 0)[1].share == 0.0


@pytest.mark.parametrize(
    "name", ["aten::mm", "aten::add", "aten::_softmax", "aten::cat", "aten::relu_", "mine::gemm", "_c10d::all_reduce"]
)
def test_everything_else_is_counted(name: str) -> None:
    assert [operation.name for operation in library.operations([operator(name, 1)], 1)] == [name]


# --- the judgement ----------------------------------------------------------------------------------------------------


def judged(
    operators: dict[str, float] | None = None, kernels: dict[str, float] | None = None, allowed: bool = False
) -> Severity | None:
    """The severity of the one hazard, for shares of operators and microseconds of kernels; None: no hazard."""
    operations = [LibraryOperation(name=name, calls=1, share=share) for name, share in (operators or {}).items()]
    found = library.device_kernels([kernel(name, time) for name, time in (kernels or {}).items()])
    hazards = library.judge(operations, found, allowed=allowed)
    assert all(hazard.id == "library_call" for hazard in hazards)
    assert len(hazards) <= 1
    return hazards[0].severity if hazards else None


GEMM, MINE, FILL = (
    "ampere_sgemm_128x64_tn",
    "mine",
    "void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>",
)


@pytest.mark.parametrize(
    ("operators", "kernels", "verdict"),
    [
        ({}, {}, None),
        ({"aten::sum": 0.25}, {}, None),
        ({"aten::sum": 0.26}, {}, Severity.REJECT),
        ({"aten::mul": 0.15, "aten::add": 0.15}, {}, Severity.REJECT),
        ({}, {MINE: 100.0}, None),
        ({}, {MINE: 75.0, GEMM: 25.0}, None),
        ({}, {MINE: 70.0, GEMM: 30.0}, Severity.REJECT),
        ({}, {GEMM: 0.0}, Severity.REJECT),
        ({}, {FILL: 1.0}, Severity.REJECT),
        ({}, {"Memcpy DtoD (Device -> Device)": 1.0}, None),
        ({}, {MINE: 10.0, FILL: 90.0}, None),
        ({}, {MINE: 10.0, "Memcpy DtoD (Device -> Device)": 90.0}, None),
        ({"aten::sum": 0.01}, {GEMM: 1.0}, Severity.REJECT),
    ],
)
def test_a_real_part_of_the_work_is_a_library_call(
    operators: dict[str, float], kernels: dict[str, float], verdict: Severity | None
) -> None:
    assert judged(operators, kernels) == verdict
    assert judged(operators, kernels, allowed=True) == (Severity.NOTE if verdict else None)


def test_the_evidence_names_what_ran_and_how_much() -> None:
    (hazard,) = library.judge([LibraryOperation(name="aten::mm", calls=1, share=0.9)], [], allowed=False)
    assert hazard.evidence == "aten::mm: operators of PyTorch touched 90% of the problem's bytes"
    kernels = library.device_kernels([kernel(GEMM, 30.0), kernel("mine", 70.0)])
    (hazard,) = library.judge([], kernels, allowed=False)
    assert hazard.evidence == f"{GEMM}: kernels of a library took 30% of the device time"


def test_a_call_without_a_kernel_of_ones_own_is_a_library_call() -> None:
    (hazard,) = library.judge([], [], own=False, allowed=False)
    assert (hazard.id, hazard.severity) == ("library_call", Severity.REJECT)
    assert library.judge([], [], own=False, allowed=True)[0].severity == Severity.NOTE


@given(
    st.lists(st.tuples(st.sampled_from(sorted(LIBRARY | OWN)), st.floats(0, 1e6)), max_size=6),
    st.lists(st.floats(0, 1), max_size=4),
    st.booleans(),
)
def test_more_of_a_library_never_counts_less(
    kernels: list[tuple[str, float]], shares: list[float], allowed: bool
) -> None:
    operations = [LibraryOperation(name=f"aten::{n}", calls=1, share=share) for n, share in enumerate(shares)]
    found: list[DeviceKernel] = library.device_kernels([kernel(*k) for k in kernels])
    more = [*operations, LibraryOperation(name="aten::mm", calls=1, share=1.0)]
    assert len(library.judge(more, found, allowed=allowed)) == 1
    assert len(library.judge(operations, found, allowed=allowed)) <= 1
