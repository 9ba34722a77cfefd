// c = a b in tiles of 32 x 32 with a pipeline of two stages: cuda::pipeline's primitives become cp.async.
#include <cuda_pipeline.h>

extern "C" __global__ void tiled_gemm(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[2][32][32], right[2][32][32];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 32 + ty, column = blockIdx.x * 32 + tx;
    float sums[4] = {0, 0, 0, 0};
    int steps = (k + 31) / 32;
    auto fetch = [&](int step) {
        for (int r = 0; r < 32; r += 8) {
            int depth = step * 32;
            int ra = row + r, ca = depth + tx, rb = depth + ty + r;
            __pipeline_memcpy_async(&left[step % 2][ty + r][tx], &a[(size_t)min(ra, m - 1) * k + min(ca, k - 1)], 4, ra < m && ca < k ? 0 : 4);
            __pipeline_memcpy_async(&right[step % 2][ty + r][tx], &b[(size_t)min(rb, k - 1) * n + min(column, n - 1)], 4, rb < k && column < n ? 0 : 4);
        }
        __pipeline_commit();
    };
    fetch(0);
    for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) fetch(step + 1);
        else __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        for (int q = 0; q < 32; ++q)
            for (int r = 0; r < 4; ++r) sums[r] += left[step % 2][ty + 8 * r][q] * right[step % 2][q][tx];
        __syncthreads();
    }
    for (int r = 0; r < 4; ++r) if (row + 8 * r < m && column < n) c[(size_t)(row + 8 * r) * n + column] = sums[r];
}
