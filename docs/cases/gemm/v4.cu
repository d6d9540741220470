#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <mma.h>

using namespace nvcuda;

// For sizes that no whole tile divides.
constexpr int TILE = 128;
constexpr int DEPTH = 16;
constexpr int SIDE = 16;
constexpr int PART = TILE / SIDE;

// A thread keeps a square of results in registers: each value that it loads from shared memory serves several of them.
__global__ void __launch_bounds__(SIDE* SIDE)
    gemm_registers(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k) {
  __shared__ float as[DEPTH][TILE + 1];
  __shared__ float bs[DEPTH][TILE];
  int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
  int top = blockIdx.y * TILE, left = blockIdx.x * TILE;
  float sums[PART][PART] = {};
  for (int start = 0; start < k; start += DEPTH) {
    for (int e = threadIdx.x; e < TILE * DEPTH; e += SIDE * SIDE) {
      int row = top + e / DEPTH, depth = start + e % DEPTH;
      as[e % DEPTH][e / DEPTH] = row < m && depth < k ? __bfloat162float(a[(size_t)row * k + depth]) : 0.0f;
    }
    for (int e = threadIdx.x; e < TILE * DEPTH; e += SIDE * SIDE) {
      int depth = start + e / TILE, column = left + e % TILE;
      bs[e / TILE][e % TILE] = depth < k && column < n ? __bfloat162float(b[(size_t)depth * n + column]) : 0.0f;
    }
    __syncthreads();
    for (int d = 0; d < DEPTH; ++d) {
      float mine[PART], theirs[PART];
      for (int i = 0; i < PART; ++i) mine[i] = as[d][y * PART + i];
      for (int j = 0; j < PART; ++j) theirs[j] = bs[d][x + SIDE * j];
      for (int i = 0; i < PART; ++i)
        for (int j = 0; j < PART; ++j) sums[i][j] += mine[i] * theirs[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < PART; ++i)
    for (int j = 0; j < PART; ++j) {
      int row = top + y * PART + i, column = left + x + SIDE * j;
      if (row < m && column < n) c[(size_t)row * n + column] = __float2bfloat16(sums[i][j]);
    }
}

constexpr int SLICE = 32;
constexpr int WARPS = 8;
constexpr int THREADS = WARPS * 32;
constexpr int WARP_ROWS = 64;
constexpr int WARP_COLUMNS = 32;
constexpr int CHUNK = 8;
constexpr int STAGES = 4;
constexpr int A_ROW = SLICE;
constexpr int B_ROW = TILE;
constexpr int STAGE = TILE * A_ROW + SLICE * B_ROW;

// Results of a warp: each fragment goes through shared memory, where it becomes bf16.
__device__ void store(wmma::fragment<wmma::accumulator, 16, 16, 16, float> (&sums)[WARP_ROWS / 16][WARP_COLUMNS / 16],
                      float* own, __nv_bfloat16* c, int n) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < WARP_ROWS / 16; ++i)
#pragma unroll
    for (int j = 0; j < WARP_COLUMNS / 16; ++j) {
      wmma::store_matrix_sync(own, sums[i][j], 16, wmma::mem_row_major);
      __syncwarp();
      for (int e = lane; e < 16 * 16; e += 32)
        c[(size_t)(i * 16 + e / 16) * n + j * 16 + e % 16] = __float2bfloat16(own[e]);
      __syncwarp();
    }
}

// Starts the copy of a slice of A and of B into shared memory, and does not wait for it.
__device__ void fetch(__nv_bfloat16* stage, const __nv_bfloat16* a, const __nv_bfloat16* b, int n, int k, int start) {
  for (int e = threadIdx.x; e < TILE * SLICE / CHUNK; e += THREADS) {
    int row = e / (SLICE / CHUNK), column = e % (SLICE / CHUNK) * CHUNK;
    __pipeline_memcpy_async(&stage[row * A_ROW + column], &a[(size_t)row * k + start + column], sizeof(uint4));
  }
  stage += TILE * A_ROW;
  for (int e = threadIdx.x; e < SLICE * TILE / CHUNK; e += THREADS) {
    int row = e / (TILE / CHUNK), column = e % (TILE / CHUNK) * CHUNK;
    __pipeline_memcpy_async(&stage[row * B_ROW + column], &b[(size_t)(start + row) * n + column], sizeof(uint4));
  }
}

// While warps multiply one slice, the copies of the next ones are under way.
__global__ void __launch_bounds__(THREADS)
    gemm_pipelined(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int n, int k) {
  extern __shared__ __align__(128) unsigned char shared[];
  __nv_bfloat16* stages = reinterpret_cast<__nv_bfloat16*>(shared);
  int warp = threadIdx.x / 32;
  int top = warp / (TILE / WARP_COLUMNS) * WARP_ROWS, left = warp % (TILE / WARP_COLUMNS) * WARP_COLUMNS;
  a += (size_t)blockIdx.y * TILE * k;
  b += blockIdx.x * TILE;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[WARP_ROWS / 16][WARP_COLUMNS / 16];
  for (auto& row : sums)
    for (auto& sum : row) wmma::fill_fragment(sum, 0.0f);
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s * SLICE < k) fetch(stages + s * STAGE, a, b, n, k, s * SLICE);
    __pipeline_commit();
  }
  for (int start = 0, s = 0; start < k; start += SLICE, s = (s + 1) % STAGES) {
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();
    int ahead = start + (STAGES - 1) * SLICE;
    if (ahead < k) fetch(stages + (s + STAGES - 1) % STAGES * STAGE, a, b, n, k, ahead);
    __pipeline_commit();
    const __nv_bfloat16* as = stages + s * STAGE;
    const __nv_bfloat16* bs = as + TILE * A_ROW;
#pragma unroll
    for (int d = 0; d < SLICE; d += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> mine[WARP_ROWS / 16];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> theirs[WARP_COLUMNS / 16];
#pragma unroll
      for (int i = 0; i < WARP_ROWS / 16; ++i) wmma::load_matrix_sync(mine[i], &as[(top + i * 16) * A_ROW + d], A_ROW);
#pragma unroll
      for (int j = 0; j < WARP_COLUMNS / 16; ++j) wmma::load_matrix_sync(theirs[j], &bs[d * B_ROW + left + j * 16], B_ROW);
#pragma unroll
      for (int i = 0; i < WARP_ROWS / 16; ++i)
#pragma unroll
        for (int j = 0; j < WARP_COLUMNS / 16; ++j) wmma::mma_sync(sums[i][j], mine[i], theirs[j], sums[i][j]);
    }
  }
  __pipeline_wait_prior(0);
  __syncthreads();
  store(sums, reinterpret_cast<float*>(shared) + warp * 16 * 16,
        c + (size_t)(blockIdx.y * TILE + top) * n + blockIdx.x * TILE + left, n);
}

extern "C" void solve(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k) {
  if (m % TILE || n % TILE || k % SLICE) {
    gemm_registers<<<dim3((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), SIDE * SIDE>>>(a, b, c, m, n, k);
    return;
  }
  int bytes = STAGES * STAGE * sizeof(__nv_bfloat16);
  cudaFuncSetAttribute(gemm_pipelined, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  gemm_pipelined<<<dim3(n / TILE, m / TILE), THREADS, bytes>>>(a, b, c, n, k);
}
