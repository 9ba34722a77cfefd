// One warp a row: Euclidean length by shuffles, a ballot of the rows' signs, the lane of the largest element by match and redux.
extern "C" __global__ void warp_norms(const float* x, float* norms, unsigned* negatives, unsigned* largest, int rows, int columns) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f, top = -1.0f;
    unsigned negative = 0;
    for (int j = lane; j < columns; j += 32) {
        float value = x[row * columns + j];
        sum += value * value;
        top = fmaxf(top, fabsf(value));
        negative += value < 0.0f;
    }
    for (int step = 16; step; step >>= 1) sum += __shfl_down_sync(~0u, sum, step);
    unsigned all = __reduce_add_sync(~0u, negative);
    unsigned highest = __reduce_max_sync(~0u, __float_as_uint(top));
    unsigned holders = __ballot_sync(~0u, __float_as_uint(top) == highest);
    if (lane == 0) {
        norms[row] = sqrtf(sum);
        negatives[row] = all;
        largest[row] = __ffs(holders) - 1;
    }
}
