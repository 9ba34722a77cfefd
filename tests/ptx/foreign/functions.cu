// Device functions: a structure by value, recursion, a pointer to a function, arrays in local memory, printf and assert.
#include <assert.h>
#include <stdio.h>

struct Line { float slope, shift; int times; double bias; };

__noinline__ __device__ float apply(Line line, float x) {
    for (int k = 0; k < line.times; ++k) x = line.slope * x + line.shift;
    return x + (float)line.bias;
}

__noinline__ __device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__noinline__ __device__ void divide(int a, int b, int* quotient, int* remainder) {
    *quotient = a / b;
    *remainder = a % b;
}

__noinline__ __device__ float twice(float x) { return 2.0f * x; }
__noinline__ __device__ float square(float x) { return x * x; }
__device__ float (*const ways[2])(float) = {twice, square};

extern "C" __global__ void functions(const float* x, float* y, int* z, Line line, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    assert(line.times >= 0);
    int quotient, remainder, order[8];
    divide(i, 7, &quotient, &remainder);
    for (int k = 0; k < 8; ++k) order[k] = (k * 5 + i) % 8;
    y[i] = ways[i % 2](apply(line, x[i]));
    z[i] = fibonacci(i % 9) + 100 * quotient + 10000 * remainder + 1000000 * order[i % 8];
    if (i == 3) printf("thread %d has %f and %s\n", i, x[i], "a word");
}
