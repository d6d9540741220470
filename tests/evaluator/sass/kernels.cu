// CUDA kernels that have a method, and kernels that have not: <has|lacks>__<method>__<what>. Nothing here is run.
// Compiled by tests/evaluator/test_sass_corpus.py for each target; what a target lacks is left out.
#include <cstdint>
#include <cuda_fp16.h>

#define KERNEL extern "C" __global__ void
#define ARCH __CUDA_ARCH__
static __device__ uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

// ---- tensor_core ----------------------------------------------------------------------------------------------------
#define MMA(name, op, C, c)                                                                                          \
    KERNEL name(const uint32_t* p, C* o) {                                                                           \
        C d0 = o[0], d1 = o[1], d2 = o[2], d3 = o[3];                                                                \
        asm volatile("mma.sync.aligned." op " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"                    \
                     : "+" c(d0), "+" c(d1), "+" c(d2), "+" c(d3)                                                    \
                     : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(p[4]), "r"(p[5]));                            \
        o[0] = d0; o[1] = d1; o[2] = d2; o[3] = d3;                                                                  \
    }
MMA(has__tensor_core__f16, "m16n8k16.row.col.f32.f16.f16.f32", float, "f")
MMA(has__tensor_core__bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "f")
MMA(has__tensor_core__tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", float, "f")
MMA(has__tensor_core__s8, "m16n8k32.row.col.s32.s8.s8.s32", int, "r")
MMA(has__tensor_core__b1, "m16n8k256.row.col.s32.b1.b1.s32.and.popc", int, "r")
#if ARCH >= 890
MMA(has__tensor_core__e4m3, "m16n8k32.row.col.f32.e4m3.e4m3.f32", float, "f")
#endif
KERNEL has__tensor_core__sparse(const uint32_t* p, float* o) {
    float d0 = o[0], d1 = o[1], d2 = o[2], d3 = o[3];
    asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9,%10,%11},{%0,%1,%2,%3},%12,0;"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(p[4]), "r"(p[5]), "r"(p[6]), "r"(p[7]), "r"(p[8]));
    o[0] = d0; o[1] = d1; o[2] = d2; o[3] = d3;
}
KERNEL lacks__tensor_core__dp4a(int* o) { o[threadIdx.x] = __dp4a(o[0], o[1], o[2]); }
KERNEL has__tensor_core__f64(const double* p, double* o) {
    double d0 = o[0], d1 = o[1];
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};"
                 : "+d"(d0), "+d"(d1) : "d"(p[0]), "d"(p[1]));
    o[0] = d0; o[1] = d1;
}
#if ARCH == 900
#define WGMMA(name, op, C, c, tail)                                                                                  \
    KERNEL name(C* o, uint64_t a, uint64_t b) {                                                                      \
        C d0 = o[0], d1 = o[1], d2 = o[2], d3 = o[3];                                                                \
        asm volatile("wgmma.fence.sync.aligned;");                                                                   \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned." op                         \
                     " {%0,%1,%2,%3}, %4, %5, p" tail "; }"                                                          \
                     : "+" c(d0), "+" c(d1), "+" c(d2), "+" c(d3) : "l"(a), "l"(b));                                 \
        asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");                           \
        o[0] = d0; o[1] = d1; o[2] = d2; o[3] = d3;                                                                  \
    }
WGMMA(has__tensor_core__wgmma_f16, "m64n8k16.f32.f16.f16", float, "f", ", 1, 1, 0, 0")
WGMMA(has__tensor_core__wgmma_s8, "m64n8k32.s32.s8.s8", int, "r", "")
WGMMA(has__tensor_core__wgmma_b1, "m64n8k256.s32.b1.b1.and.popc", int, "r", "")
WGMMA(has__tensor_core__wgmma_e4m3, "m64n8k32.f32.e4m3.e4m3", float, "f", ", 1, 1")
#endif
#if ARCH >= 1000 && ARCH < 1200
#define TCGEN(name, kind, scales)                                                                                    \
    KERNEL name(uint32_t t, uint64_t a, uint64_t b, uint32_t i) {                                                    \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; tcgen05.mma.cta_group::1.kind::" kind                     \
                     " [%0], %1, %2, %3" scales ", p; }" ::"r"(t), "l"(a), "l"(b), "r"(i) : "memory");               \
    }
TCGEN(has__tensor_core__tcgen_f16, "f16", "")
TCGEN(has__tensor_core__tcgen_tf32, "tf32", "")
TCGEN(has__tensor_core__tcgen_f8f6f4, "f8f6f4", "")
TCGEN(has__tensor_core__tcgen_mxf4, "mxf4.block_scale", ", [%0], [%0]")
TCGEN(has__tensor_core__tcgen_mxf8, "mxf8f6f4.block_scale", ", [%0], [%0]")
TCGEN(has__tensor_core__tcgen_nvf4, "mxf4nvf4.block_scale.scale_vec::4X", ", [%0], [%0]")
KERNEL lacks__tensor_core__into_tensor_memory(uint32_t t, uint64_t a) {
    asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(t), "l"(a) : "memory");
}
#if ARCH != 1030
TCGEN(has__tensor_core__tcgen_i8, "i8", "")
#endif
KERNEL lacks__tensor_core__tensor_memory(uint32_t t, float* o) {  // reads tensor memory, multiplies nothing
    float r;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1]; tcgen05.wait::ld.sync.aligned;" : "=f"(r) : "r"(t));
    o[threadIdx.x] = r;
}
#endif
#if ARCH >= 1200
MMA(has__tensor_core__f8f6f4, "m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32", float, "f")
KERNEL has__tensor_core__mxf4(const uint32_t* p, float* o) {
    float d0 = o[0], d1 = o[1], d2 = o[2], d3 = o[3];
    asm volatile("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 "
                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3}, {%10},{0,0},{%11},{0,0};"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(p[4]), "r"(p[5]), "r"(p[6]), "r"(p[7]));
    o[0] = d0; o[1] = d1; o[2] = d2; o[3] = d3;
}
#endif
KERNEL lacks__tensor_core__packed_half(__half2* o, int n) {
    __half2 v = o[threadIdx.x];
    for (int i = 0; i < n; i++) v = __hfma2(v, v, v);
    o[threadIdx.x] = v;
}
KERNEL lacks__tensor_core__fp32(const float* x, float* o, int n) {
    float s = 0;
    for (int i = 0; i < n; i++) s += x[i] * x[i + n];
    o[threadIdx.x] = s;
}

// ---- vectorized_access ----------------------------------------------------------------------------------------------
KERNEL has__vectorized_access__load(const float4* __restrict__ x, float* y) {
    float4 v = x[threadIdx.x];
    y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
KERNEL has__vectorized_access__store(const float* __restrict__ x, float4* y) {
    y[threadIdx.x] = make_float4(x[threadIdx.x], 1, 2, 3);
}
KERNEL has__vectorized_access__async(const float* x, float* y) {
    __shared__ float s[1024];
    asm volatile("cp.async.cg.shared.global [%0],[%1],16; cp.async.wait_all;" ::"r"(shared_address(s + threadIdx.x * 4)),
                 "l"(x + threadIdx.x * 4) : "memory");
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x ^ 1];
}
#if ARCH >= 1000
KERNEL has__vectorized_access__32_byte_store(const uint64_t* x, uint64_t* y) {
    uint64_t a = x[threadIdx.x];
    asm volatile("st.global.v4.u64 [%1],{%0,%0,%0,%0};" ::"l"(a), "l"(y + 4 * threadIdx.x) : "memory");
}
KERNEL has__vectorized_access__32_byte_load(const uint64_t* x, uint64_t* y) {
    uint64_t a, b, c, d;
    asm volatile("ld.global.v4.u64 {%0,%1,%2,%3},[%4];" : "=l"(a), "=l"(b), "=l"(c), "=l"(d) : "l"(x + 4 * threadIdx.x));
    y[threadIdx.x] = a + b + c + d;
}
#endif
KERNEL lacks__vectorized_access__4_bytes(const float* __restrict__ x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
KERNEL lacks__vectorized_access__fetched_as_128_bytes(const float* x, float* y) {  // LTC128B is no width
    __shared__ float s[1024];
    asm volatile("cp.async.ca.shared.global.L2::128B [%0],[%1],4; cp.async.wait_all;" ::"r"(shared_address(s + threadIdx.x)),
                 "l"(x + threadIdx.x) : "memory");
    float v;
    asm volatile("ld.global.L2::128B.f32 %0,[%1];" : "=f"(v) : "l"(x + threadIdx.x));
    __syncthreads();
    y[threadIdx.x] = v + s[threadIdx.x ^ 1];
}
KERNEL lacks__vectorized_access__8_bytes(const float2* __restrict__ x, float2* y) { y[threadIdx.x] = x[threadIdx.x]; }
KERNEL lacks__vectorized_access__shared(const float* x, float* y) {  // 16 bytes a thread, in shared memory alone
    __shared__ float4 s[64];
    s[threadIdx.x] = make_float4(x[threadIdx.x], x[threadIdx.x + 64], 1, 2);
    __syncthreads();
    float4 v = s[threadIdx.x ^ 1];
    y[threadIdx.x] = v.x * v.y + v.z * v.w;
}
KERNEL unclear__vectorized_access__generic(float* const* x, float* y, int n) {  // global or shared, as n says
    __shared__ float4 s[32];
    s[threadIdx.x].x = x[0][0];
    __syncthreads();
    const float4* p = n ? s : (const float4*)x[1];
    float4 v = p[threadIdx.x];
    y[threadIdx.x] = v.x + v.y + v.z + v.w;
}

// ---- async_copy -----------------------------------------------------------------------------------------------------
KERNEL has__async_copy__16_bytes(const float* x, float* y) {
    __shared__ float s[1024];
    asm volatile("cp.async.cg.shared.global [%0],[%1],16; cp.async.wait_all;" ::"r"(shared_address(s + threadIdx.x * 4)),
                 "l"(x + threadIdx.x * 4) : "memory");
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x ^ 1];
}
KERNEL has__async_copy__4_bytes(const float* x, float* y) {
    __shared__ float s[1024];
    asm volatile("cp.async.ca.shared.global [%0],[%1],4; cp.async.wait_all;" ::"r"(shared_address(s + threadIdx.x)),
                 "l"(x + threadIdx.x) : "memory");
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x ^ 1];
}
KERNEL lacks__async_copy__commit(float* y) {  // waits for copies that nobody makes
    __shared__ uint64_t bar;
    asm volatile("cp.async.commit_group; cp.async.wait_group 0; cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(
        shared_address(&bar)));
    y[threadIdx.x] = 1;
}
KERNEL lacks__async_copy__through_registers(const float* x, float* y) {
    __shared__ float s[1024];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x ^ 1];
}

// ---- ldmatrix_stmatrix ----------------------------------------------------------------------------------------------
KERNEL has__ldmatrix_stmatrix__load(uint32_t* y) {
    __shared__ uint32_t s[1024];
    s[threadIdx.x] = y[threadIdx.x];
    __syncthreads();
    uint32_t r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0},[%1];" : "=r"(r) : "r"(shared_address(s)));
    y[threadIdx.x] = r;
}
#if ARCH >= 900
KERNEL has__ldmatrix_stmatrix__store(uint32_t* y) {
    __shared__ uint32_t s[1024];
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0],{%1};" ::"r"(shared_address(s)), "r"(y[0]) : "memory");
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}
#endif
KERNEL lacks__ldmatrix_stmatrix__movmatrix(uint32_t* y) {  // from register to register
    uint32_t r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(r) : "r"(y[threadIdx.x]));
    y[threadIdx.x] = r;
}
KERNEL lacks__ldmatrix_stmatrix__shared(uint32_t* y) {
    __shared__ uint32_t s[1024];
    s[threadIdx.x] = y[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x ^ 1];
}

// ---- TMA and setmaxnreg ---------------------------------------------------------------------------------------------
#if ARCH >= 900
KERNEL has__tma_descriptor__load(uint64_t m) {
    __shared__ __align__(128) float s[1024];
    __shared__ uint64_t bar;
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1,{%3,%3}],[%2];" ::"r"(
                     shared_address(s)), "l"(m), "r"(shared_address(&bar)), "r"(0) : "memory");
}
KERNEL has__tma_descriptor__store(uint64_t m) {
    __shared__ __align__(128) float s[1024];
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%1,{%2,%2}],[%0];" ::"r"(shared_address(s)),
                 "l"(m), "r"(0) : "memory");
}
KERNEL has__tma_descriptor__reduce(uint64_t m) {
    __shared__ __align__(128) float s[1024];
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%1,{%2,%2}],[%0];" ::"r"(
                     shared_address(s)), "l"(m), "r"(0) : "memory");
}
KERNEL has__tma_descriptor__im2col(uint64_t m) {
    __shared__ __align__(128) float s[1024];
    __shared__ uint64_t bar;
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                 "[%0],[%1,{%3,%3,%3,%3}],[%2],{%4,%4};" ::"r"(shared_address(s)), "l"(m), "r"(shared_address(&bar)),
                 "r"(0), "h"((short)0) : "memory");
}
#if ARCH >= 1000 && ARCH < 1200
KERNEL has__tma_descriptor__gather(uint64_t m) {
    __shared__ __align__(128) float s[1024];
    __shared__ uint64_t bar;
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
                 "[%0],[%1,{%3,%3,%3,%3,%3}],[%2];" ::"r"(shared_address(s)), "l"(m), "r"(shared_address(&bar)),
                 "r"(0) : "memory");
}
#endif
KERNEL lacks__tma_descriptor__replace(uint64_t m) {  // changes a descriptor, moves no data
    asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %0;" ::"l"(m) : "memory");
}
KERNEL lacks__tma_descriptor__prefetch(uint64_t m) {
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0,{%1,%1}];" ::"l"(m), "r"(0) : "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(m) : "memory");
}
KERNEL lacks__tma_descriptor__bulk(const float* x) {
    __shared__ __align__(128) float s[1024];
    __shared__ uint64_t bar;
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],1024,[%2];" ::"r"(
                     shared_address(s)), "l"(x), "r"(shared_address(&bar)) : "memory");
}
KERNEL has__tma_bulk_copy__load(const float* x) {
    __shared__ __align__(128) float s[1024];
    __shared__ uint64_t bar;
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],1024,[%2];" ::"r"(
                     shared_address(s)), "l"(x), "r"(shared_address(&bar)) : "memory");
}
KERNEL has__tma_bulk_copy__reduce(float* y) {
    __shared__ __align__(128) float s[1024];
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0],[%1],1024;" ::"l"(y),
                 "r"(shared_address(s)) : "memory");
}
KERNEL has__tma_bulk_copy__store(float* y) {
    __shared__ __align__(128) float s[1024];
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0],[%1],1024;" ::"l"(y), "r"(shared_address(s)) : "memory");
}
KERNEL lacks__tma_bulk_copy__commit(float* y) {
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
    y[threadIdx.x] = 1;
}
KERNEL lacks__tma_bulk_copy__remote_store(uint32_t to) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], 1, [%1];" ::"r"(to), "r"(to + 64)
                 : "memory");
}
KERNEL lacks__tma_bulk_copy__prefetch(const float* x) { asm volatile("cp.async.bulk.prefetch.L2.global [%0], 1024;" ::"l"(x)); }
KERNEL __launch_bounds__(384, 1) has__setmaxnreg__two_groups(float* y) {
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        y[0] = 1;
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        y[threadIdx.x] = 2;
    }
}
KERNEL __launch_bounds__(384, 1) lacks__setmaxnreg__bounds(float* y) { y[threadIdx.x] = 2; }
#endif

// ---- warp_shuffle ---------------------------------------------------------------------------------------------------
KERNEL has__warp_shuffle__xor(float* y) { y[threadIdx.x] += __shfl_xor_sync(~0u, y[threadIdx.x], 16); }
KERNEL has__warp_shuffle__down(float* y) { y[threadIdx.x] += __shfl_down_sync(~0u, y[threadIdx.x], 16); }
KERNEL has__warp_shuffle__up(float* y) { y[threadIdx.x] += __shfl_up_sync(~0u, y[threadIdx.x], 1); }
KERNEL unclear__warp_shuffle__broadcast(float* y) { y[threadIdx.x] = __shfl_sync(~0u, y[threadIdx.x], 0); }
KERNEL unclear__warp_shuffle__atomic(int* n, float* y) { y[atomicAdd(n, 1)] = 1; }  // the compiler's own SHFL.IDX
KERNEL lacks__warp_shuffle__other_collectives(int* y) {
    int v = y[threadIdx.x];
    y[threadIdx.x] = __reduce_add_sync(~0u, v) + __ballot_sync(~0u, v) + __match_any_sync(~0u, v);
}

// ---- mufu_ex2_softmax -----------------------------------------------------------------------------------------------
KERNEL has__mufu_ex2_softmax__fast(float* y) { y[threadIdx.x] = __expf(y[threadIdx.x]); }
KERNEL has__mufu_ex2_softmax__accurate(float* y) { y[threadIdx.x] = expf(y[threadIdx.x]); }
KERNEL has__mufu_ex2_softmax__half(__half2* y) { y[threadIdx.x] = h2exp2(y[threadIdx.x]); }
KERNEL lacks__mufu_ex2_softmax__other_functions(float* y) {
    y[threadIdx.x] = rsqrtf(y[threadIdx.x]) + __sinf(y[0]) + __log2f(y[1]);
}
KERNEL lacks__mufu_ex2_softmax__tanh(float* y) {
    asm("tanh.approx.f32 %0,%1;" : "=f"(y[threadIdx.x]) : "f"(y[threadIdx.x]));
}
KERNEL lacks__mufu_ex2_softmax__polynomial(float* y) {
    float x = y[threadIdx.x];
    y[threadIdx.x] = ((0.0555f * x + 0.2402f) * x + 0.6931f) * x + 1.f;
}
KERNEL lacks__mufu_ex2_softmax__double(double* y) { y[threadIdx.x] = exp(y[threadIdx.x]); }

// ---- register_spill -------------------------------------------------------------------------------------------------
KERNEL __launch_bounds__(1024, 2) has__register_spill__bounded(const float* x, float* y) {
    float a[96];  // 96 live values, and 32 registers a thread
#pragma unroll
    for (int i = 0; i < 96; i++) a[i] = x[i * 1024 + threadIdx.x];
    __syncthreads();
    float s = 0;
#pragma unroll
    for (int i = 0; i < 96; i++) s += a[i] * a[(i * 7) % 96];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 96; i++) y[i * 1024 + threadIdx.x] = a[95 - i] * s;
}
KERNEL lacks__register_spill__local_array(float* y, int n) {  // LDL and STL, and nothing is spilled
    float a[64];
    for (int i = 0; i < 64; i++) a[i] = y[i * n];
    y[0] = a[n];
}
KERNEL lacks__register_spill__copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
