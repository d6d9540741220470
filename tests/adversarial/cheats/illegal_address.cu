// Writes to an address that is nobody's, which ends the process's CUDA context.
#include <cuda_runtime.h>

__global__ void fault(float* output) { output[(1ull << 44) + threadIdx.x] = 1.0f; }

extern "C" void solve(const float* input, float* output, int rows, int cols) {
    fault<<<1, 32>>>(output);
    cudaDeviceSynchronize();
}
