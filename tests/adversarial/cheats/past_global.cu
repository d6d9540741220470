// Row sums of which the last block's threads write past the end of the output, one a missing row.
#include <cuda_runtime.h>

__global__ void rowsum(const float* input, float* output, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    if (row < rows)
        for (int at = 0; at < cols; ++at) sum += input[(size_t)row * cols + at];
    output[row] = sum;
}

extern "C" void solve(const float* input, float* output, int rows, int cols) {
    rowsum<<<(rows + 127) / 128, 128>>>(input, output, rows, cols);
    cudaDeviceSynchronize();
}
