// Every CUDA block of the wiki, called and compared with a loop on the host. test_code_blocks.py writes blocks.cuh, in which
// block 1 of kernel/transpose.md is the namespace kernel_transpose_1, compiles this for compute capability 9.0, and runs it
// where there is a GPU. A block that no check below calls is found by that test.
#include "blocks.cuh"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

int failures = 0;

struct Array {  // on the GPU at `at`; `[i]` is the host's copy, which `check` brings up to date
  float* at;
  std::vector<float> host;
  explicit Array(size_t count, bool filled = false) : host(count) {
    for (size_t i = 0; i < count; ++i) host[i] = filled ? float(int(i * 2654435761u % 1000) - 500) / 250.f : 0.f;
    cudaMalloc(&at, count * sizeof(float));
    cudaMemcpy(at, host.data(), count * sizeof(float), cudaMemcpyHostToDevice);
  }
  ~Array() { cudaFree(at); }
  const float& operator[](size_t i) const { return host[i]; }
  template <class T> T* as() const { return reinterpret_cast<T*>(at); }
};

void check(const char* name, Array& found, const std::function<float(size_t)>& wanted) {
  cudaDeviceSynchronize();
  cudaMemcpy(found.host.data(), found.at, found.host.size() * sizeof(float), cudaMemcpyDeviceToHost);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) std::printf("%s: %s\n", name, cudaGetErrorString(error)), std::exit(1);
  for (size_t i = 0; i < found.host.size(); ++i)
    if (!(std::fabs(found[i] - wanted(i)) <= 1e-3f * (1.f + std::fabs(wanted(i))))) {
      std::printf("%s: %zu is %g, not %g\n", name, i, found[i], wanted(i)), ++failures;
      return;
    }
  std::printf("%s\n", name);
}

float summed(const float* x, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += x[i];
  return float(sum);
}

__global__ void warp_sums(const float* x, float* y) { y[threadIdx.x] = kernel_reduction_1::warp_sum(x[threadIdx.x]); }
__global__ void warp_scan(const float* x, float* y) { y[threadIdx.x] = kernel_scan_1::warp_inclusive_scan(x[threadIdx.x]); }
__global__ void terms(const float* x, float* y) {
  y[threadIdx.x] = technique_fast_exponential_1::softmax_term(x[threadIdx.x], 2.f, 1.4426950408889634f);
}
__global__ void order(float* y, int tiles_m, int tiles_n) {
  int m, n;
  technique_l2_swizzle_1::grouped_tile(threadIdx.x, tiles_m, tiles_n, 2, m, n);
  y[m * tiles_n + n] += 1.f;
}
__global__ void merged(float* y) {
  using technique_online_softmax_1::merge;
  const auto a = merge({1.f, 2.f}, {3.f, 4.f}), none = merge({-INFINITY, 0.f}, {-INFINITY, 0.f});
  y[0] = a.m, y[1] = a.d, y[2] = none.d;
}

}  // namespace

int main() {
  const int m = 64, n = 96, count = m * n;
  const Array x(count, true);
  const auto twice = [&](size_t i) { return 2.f * x[i]; };
  const auto column = [&](size_t i) { float s = 0; for (int r = 0; r < m; ++r) s += x[r * n + i]; return s; };
  const auto flipped = [&](size_t i) { return x[i % m * n + i / m]; };
  cudaStream_t stream;
  cudaStreamCreate(&stream);

  { Array y(count); kernel_elementwise_1::relu4<<<4, 64>>>(y.as<float4>(), x.as<float4>(), count / 4);
    check("kernel_elementwise_1", y, [&](size_t i) { return std::fmax(x[i], 0.f); }); }
  { Array y(32); warp_sums<<<1, 32>>>(x.at, y.at);
    check("kernel_reduction_1", y, [&](size_t) { return summed(&x[0], 32); }); }
  { Array y(32); warp_scan<<<1, 32>>>(x.at, y.at);
    check("kernel_scan_1", y, [&](size_t i) { return summed(&x[0], i + 1); }); }
  { Array y(count); kernel_transpose_1::transpose32<<<dim3(3, 2), dim3(32, 8)>>>(y.at, x.at, m, n);
    check("kernel_transpose_1", y, flipped); }
  { Array y(256); language_cuda_1::launch(y.at, stream);
    check("language_cuda_1", y, [](size_t i) { return float(255 - i); }); }
  { Array y(count); profiling_bank_conflicts_1::transpose_padded<<<dim3(3, 2), dim3(32, 32)>>>(x.at, y.at, m, n);
    check("profiling_bank_conflicts_1", y, flipped); }
  { Array y(count); technique_cache_hints_1::keep_in_l2(stream, x.at, count * 4);
    technique_vectorized_access_1::scale4<<<count / 4 / 64, 64, 0, stream>>>(x.as<float4>(), y.as<float4>(), 2.f, count / 4);
    check("technique_cache_hints_1", y, twice); }
  { Array y(n); technique_coalesced_access_1::column_sum<<<2, 64>>>(x.at, y.at, m, n);
    check("technique_coalesced_access_1", y, column); }
  { Array y(100); const cudaGraphExec_t graph = technique_cuda_graphs_1::record(stream, y.at, 100, 5);
    cudaGraphLaunch(graph, stream), cudaGraphLaunch(graph, stream);
    check("technique_cuda_graphs_1", y, [](size_t) { return 10.f; }); }
  { Array y(32); terms<<<1, 32>>>(x.at, y.at);
    check("technique_fast_exponential_1", y, [&](size_t i) { return std::exp(x[i] - 2.f); }); }
  { Array y(count); technique_kernel_fusion_1::bias_gelu_residual<<<4, 64>>>(x.at, x.at, x.at, y.at, n, count);
    check("technique_kernel_fusion_1", y, [&](size_t i) {
      const float v = x[i] + x[i % n];
      return 0.5f * v * (1.f + std::erf(v * 0.70710678f)) + x[i]; }); }
  { Array y(15); order<<<1, 15>>>(y.at, 5, 3);
    check("technique_l2_swizzle_1", y, [](size_t) { return 1.f; }); }
  { Array y(count, true); technique_launch_configuration_1::launch(y.at, count, stream);
    check("technique_launch_configuration_1", y, twice); }
  { Array y(3); merged<<<1, 1>>>(y.at);
    check("technique_online_softmax_1", y, [](size_t i) { return i == 0 ? 3.f : i == 1 ? 4.f + 2.f * std::exp(-2.f) : 0.f; }); }
  { Array y(1); technique_persistent_kernel_1::launch(1000, 128, 0, stream);
    check("technique_persistent_kernel_1", y, [](size_t) { return 0.f; }); }
  { Array y(count, true); technique_register_pressure_1::axpy4<<<6, 256>>>(1.f, x.as<float4>(), y.as<float4>(), count / 4);
    check("technique_register_pressure_1", y, twice); }
  { Array y(1); technique_software_pipelining_1::tile_sum<3, 128><<<4, 32>>>(x.at, y.at, 12);
    check("technique_software_pipelining_1", y, [&](size_t) { return summed(&x[0], count); }); }
  { Array y(m); technique_thread_block_clusters_1::row_sum<<<4 * m, 64>>>(x.at, y.at, n);
    check("technique_thread_block_clusters_1", y, [&](size_t i) { return summed(&x[i * n], n); }); }
  { Array y(count); technique_thread_coarsening_1::axpy_coarse<4><<<6, 64>>>(x.as<float4>(), y.as<float4>(), 2.f, count / 4);
    check("technique_thread_coarsening_1", y, twice); }
  { Array y(64 * 32); technique_tiling_1::matmul_tiled<16><<<dim3(2, 4), dim3(16, 16)>>>(x.at, x.at, y.at, 32, 96);
    check("technique_tiling_1", y, [&](size_t i) {
      float s = 0;
      for (int k = 0; k < 96; ++k) s += x[i / 32 * 96 + k] * x[k * 32 + i % 32];
      return s; }); }
  { Array y(count); technique_tma_1::scale_tiles<<<3, 128>>>(x.at, y.at, 2.f);
    check("technique_tma_1", y, twice); }
  { Array y(count); technique_vectorized_access_1::scale4<<<count / 4 / 64, 64>>>(x.as<float4>(), y.as<float4>(), 2.f, count / 4);
    check("technique_vectorized_access_1", y, twice); }
  { Array y(256); technique_warp_shuffle_reduction_1::k<<<1, 256>>>(x.at, y.at);
    check("technique_warp_shuffle_reduction_1", y, [&](size_t) { return summed(&x[0], 256); }); }
  { Array y(2); technique_warp_specialization_1::sum_stream<<<2, 384>>>(x.at, y.at, 3);
    check("technique_warp_specialization_1", y, [&](size_t i) { return summed(&x[i * 3072], 3072); }); }
  return failures != 0;
}
