// A kernel that does not end: at most some four minutes.
#include <cuda_runtime.h>

__global__ void wait(float* output) {
    long long start = clock64();
    while (clock64() - start < 400000000000ll) __nanosleep(1000);
    output[0] = 0.0f;
}

extern "C" void solve(const float* input, float* output, int rows, int cols) {
    wait<<<1, 1>>>(output);
    cudaDeviceSynchronize();
}
