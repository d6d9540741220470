// c = a'b in fp32 without tensor cores: tiles of 128 x 128 in shared memory, 8 x 8 results a thread, multiply-adds.
#include <cuda_runtime.h>

#define TILE 128
#define DEPTH 8

__global__ void __launch_bounds__(256, 2)
    matmul_fma(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  __shared__ float4 as[2][DEPTH][TILE / 4], bs[2][DEPTH][TILE / 4];
  int x = threadIdx.x % 16, y = threadIdx.x / 16, lane = threadIdx.x % 32, depth = threadIdx.x / 32;
  const float4* from_a = (const float4*)(a + (size_t)depth * m + blockIdx.y * TILE) + lane;
  const float4* from_b = (const float4*)(b + (size_t)depth * n + blockIdx.x * TILE) + lane;
  float total[8][8] = {};
  as[0][depth][lane] = *from_a;
  bs[0][depth][lane] = *from_b;
  __syncthreads();
  for (int at = 0, now = 0; at < k; at += DEPTH, now ^= 1) {
    float4 next_a, next_b;
    bool more = at + DEPTH < k;
    if (more) {
      next_a = from_a[(size_t)(at + DEPTH) * m / 4];
      next_b = from_b[(size_t)(at + DEPTH) * n / 4];
    }
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
      // Two pieces of four that lie 64 apart: with eight in a row, threads would meet in a bank.
      float4 p = as[now][d][y], q = as[now][d][y + 16], r = bs[now][d][x], s = bs[now][d][x + 16];
      float left[8] = {p.x, p.y, p.z, p.w, q.x, q.y, q.z, q.w};
      float right[8] = {r.x, r.y, r.z, r.w, s.x, s.y, s.z, s.w};
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) total[i][j] = fmaf(left[i], right[j], total[i][j]);
    }
    if (more) {
      as[now ^ 1][depth][lane] = next_a;
      bs[now ^ 1][depth][lane] = next_b;
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; i++) {
    size_t row = blockIdx.y * TILE + y * 4 + i % 4 + i / 4 * 64;
    float4* to = (float4*)(c + row * n + blockIdx.x * TILE);
    to[x] = make_float4(total[i][0], total[i][1], total[i][2], total[i][3]);
    to[x + 16] = make_float4(total[i][4], total[i][5], total[i][6], total[i][7]);
  }
}

// m and n must be multiples of 128, k of 8.
extern "C" void solve(const float* a, const float* b, float* c, int m, int n, int k) {
  matmul_fma<<<dim3(n / TILE, m / TILE), 256>>>(a, b, c, m, n, k);
}
