// A comb filter, y[t] = x[t] - x[t - 400], a channel a thread: its delay line takes so much shared memory that one
// block of four warps fits on a multiprocessor.
#include <cuda_runtime.h>

#define DELAY 400
#define THREADS 128

__global__ void delay_line(const float* __restrict__ x, float* __restrict__ y, int channels, int samples) {
  extern __shared__ float line[];  // DELAY x THREADS
  int channel = blockIdx.x * THREADS + threadIdx.x;
  for (int i = 0; i < DELAY; i++) line[i * THREADS + threadIdx.x] = 0.0f;
  if (channel >= channels) return;
  int slot = 0;
#pragma unroll 1
  for (int t = 0; t < samples; t++) {
    float now = x[(size_t)t * channels + channel];
    float* place = &line[slot * THREADS + threadIdx.x];
    y[(size_t)t * channels + channel] = now - *place;
    *place = now;
    slot = slot + 1 == DELAY ? 0 : slot + 1;
  }
}

extern "C" void solve(const float* x, float* y, int channels, int samples) {
  int bytes = DELAY * THREADS * sizeof(float);
  cudaFuncSetAttribute(delay_line, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  delay_line<<<(channels + THREADS - 1) / THREADS, THREADS, bytes>>>(x, y, channels, samples);
}
