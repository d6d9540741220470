// A transpose through a tile of 32 x 32 without padding: a warp reads a column of it, which lies in one bank.
#include <cuda_runtime.h>

#define TILE 32
#define ROWS 8

__global__ void transpose_conflicts(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
  __shared__ float tile[TILE][TILE];
  int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
  for (int step = 0; step < TILE; step += ROWS)
    if (row + step < rows && column < cols)
      tile[threadIdx.y + step][threadIdx.x] = x[(size_t)(row + step) * cols + column];
  __syncthreads();
  column = blockIdx.y * TILE + threadIdx.x, row = blockIdx.x * TILE + threadIdx.y;
  for (int step = 0; step < TILE; step += ROWS)
    if (row + step < cols && column < rows)
      y[(size_t)(row + step) * rows + column] = tile[threadIdx.x][threadIdx.y + step];
}

extern "C" void solve(const float* x, float* y, int rows, int cols) {
  dim3 grid((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE), block(TILE, ROWS);
  transpose_conflicts<<<grid, block>>>(x, y, rows, cols);
}
