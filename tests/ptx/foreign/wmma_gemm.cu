// c = relu(a b) of halves with nvcuda::wmma, one warp per 16 x 16 tile, b stored by columns.
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void wmma_gemm(const half* a, const half* b, float* c, int m, int n, int k) {
    int tile_m = blockIdx.y, tile_n = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (tile_m * 16 >= m || tile_n * 16 >= n) return;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    for (int q = 0; q < k; q += 16) {
        wmma::load_matrix_sync(fa, a + tile_m * 16 * k + q, k);
        wmma::load_matrix_sync(fb, b + tile_n * 16 * k + q, k);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    for (int i = 0; i < fc.num_elements; ++i) fc.x[i] = fmaxf(fc.x[i], 0.0f);
    wmma::store_matrix_sync(c + tile_m * 16 * n + tile_n * 16, fc, n, wmma::mem_row_major);
}
