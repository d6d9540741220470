#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_pipeline.h>

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

constexpr int ROWS = 128;
constexpr int COLUMNS = 256;
constexpr int SLICE = 64;
constexpr int STAGES = 4;
constexpr int AHEAD = STAGES - 2;
constexpr int THREADS = 256;
constexpr int CHUNK = 8;
constexpr int CORE = CHUNK * CHUNK;
constexpr int STAGE = (ROWS + COLUMNS) * SLICE;

// Copies a slice as the warpgroup instruction reads it: cores of eight rows by one chunk, each in one piece.
__device__ void fetch(__nv_bfloat16* stage, const __nv_bfloat16* a, const __nv_bfloat16* b, int n, int k, int start) {
  for (int e = threadIdx.x; e < ROWS * SLICE / CHUNK; e += THREADS) {
    int inside = e % CHUNK, chunk = e / CHUNK % (SLICE / CHUNK), core = e / SLICE;
    __pipeline_memcpy_async(&stage[(core * (SLICE / CHUNK) + chunk) * CORE + inside * CHUNK],
                            &a[(size_t)(core * CHUNK + inside) * k + start + chunk * CHUNK], sizeof(uint4));
  }
  stage += ROWS * SLICE;
  for (int e = threadIdx.x; e < SLICE * COLUMNS / CHUNK; e += THREADS) {
    int inside = e % CHUNK, chunk = e / CHUNK % (COLUMNS / CHUNK), core = e / COLUMNS;
    __pipeline_memcpy_async(&stage[(core * (COLUMNS / CHUNK) + chunk) * CORE + inside * CHUNK],
                            &b[(size_t)(start + core * CHUNK + inside) * n + chunk * CHUNK], sizeof(uint4));
  }
}

// Where a matrix lies in shared memory, for the warpgroup instruction; distances in elements.
__device__ uint64_t described(const __nv_bfloat16* at, int leading, int stride) {
  uint64_t address = __cvta_generic_to_shared(at);
  return (address >> 4 & 0x3fff) | (uint64_t)(leading / CHUNK) << 16 | (uint64_t)(stride / CHUNK) << 32;
}

__device__ void multiply(float (&d)[128], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127} "
      ", %128, %129, 1, 1, 1, 0, 1;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
        "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
        "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
        "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
        "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
        "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
        "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
        "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
        "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
      : "l"(a), "l"(b));
}

// Two warpgroups, each with half of the tile's rows, let the tensor cores read both operands from shared memory.
__global__ void __launch_bounds__(THREADS, 1)
    gemm_warpgroups(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int n, int k) {
  extern __shared__ __align__(128) unsigned char shared[];
  __nv_bfloat16* stages = reinterpret_cast<__nv_bfloat16*>(shared);
  int half = threadIdx.x / 128 * (ROWS / 2);
  a += (size_t)blockIdx.y * ROWS * k;
  b += blockIdx.x * COLUMNS;
  float sums[128] = {};
  for (int s = 0; s < AHEAD; ++s) {
    if (s * SLICE < k) fetch(stages + s * STAGE, a, b, n, k, s * SLICE);
    __pipeline_commit();
  }
  for (int start = 0, s = 0; start < k; start += SLICE, s = (s + 1) % STAGES) {
    __pipeline_wait_prior(AHEAD - 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const __nv_bfloat16* as = stages + s * STAGE + half * SLICE;
    const __nv_bfloat16* bs = stages + s * STAGE + ROWS * SLICE;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int d = 0; d < SLICE; d += 16)
      multiply(sums, described(as + d * CHUNK, CORE, SLICE * CHUNK), described(bs + d * COLUMNS, COLUMNS * CHUNK, CORE));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    int ahead = start + AHEAD * SLICE;
    if (ahead < k) fetch(stages + (s + AHEAD) % STAGES * STAGE, a, b, n, k, ahead);
    __pipeline_commit();
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  int lane = threadIdx.x % 32, row = half + threadIdx.x % 128 / 32 * 16 + lane / 4;
  c += (size_t)(blockIdx.y * ROWS + row) * n + blockIdx.x * COLUMNS + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < COLUMNS / 8; ++j) {
    *reinterpret_cast<__nv_bfloat162*>(c + j * 8) = __floats2bfloat162_rn(sums[j * 4], sums[j * 4 + 1]);
    *reinterpret_cast<__nv_bfloat162*>(c + (size_t)8 * n + j * 8) =
        __floats2bfloat162_rn(sums[j * 4 + 2], sums[j * 4 + 3]);
  }
}

extern "C" void solve(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k) {
  if (m % ROWS || n % COLUMNS || k % SLICE) {
    gemm_registers<<<dim3((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), SIDE * SIDE>>>(a, b, c, m, n, k);
    return;
  }
  int bytes = STAGES * STAGE * sizeof(__nv_bfloat16);
  cudaFuncSetAttribute(gemm_warpgroups, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  gemm_warpgroups<<<dim3(n / COLUMNS, m / ROWS), THREADS, bytes>>>(a, b, c, n, k);
}
