// One block a row: maximum, sum and quotient with shuffles within warps and shared memory between them.
__inline__ __device__ float across(float value, bool largest, float* scratch) {
    for (int step = 16; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffff, value, step);
        value = largest ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = scratch[0];
    for (int warp = 1; warp < blockDim.x / 32; ++warp) value = largest ? fmaxf(value, scratch[warp]) : value + scratch[warp];
    __syncthreads();
    return value;
}

extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int columns) {
    __shared__ float scratch[32];
    const float* row = x + (size_t)blockIdx.x * columns;
    float largest = -INFINITY;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) largest = fmaxf(largest, row[j]);
    largest = across(largest, true, scratch);
    float sum = 0.0f;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) sum += expf(row[j] - largest);
    sum = across(sum, false, scratch);
    for (int j = threadIdx.x; j < columns; j += blockDim.x) y[(size_t)blockIdx.x * columns + j] = expf(row[j] - largest) / sum;
}
