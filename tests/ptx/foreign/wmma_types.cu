// One tile of each type that nvcuda::wmma has, with layouts of every kind: c = a b + c.
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;

template <int M, int N, int K, class Stored, class Element, class Sum, class LayoutA, class LayoutB>
__device__ void tile(const Stored* a, int step_a, const Stored* b, int step_b, Sum* c, int step_c, wmma::layout_t layout) {
    wmma::fragment<wmma::matrix_a, M, N, K, Element, LayoutA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, Element, LayoutB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> fc;
    wmma::load_matrix_sync(fa, a, step_a);
    wmma::load_matrix_sync(fb, b, step_b);
    wmma::load_matrix_sync(fc, c, step_c, layout);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, step_c, layout);
}

extern "C" __global__ void wmma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
    tile<32, 8, 16, __nv_bfloat16, __nv_bfloat16, float, wmma::row_major, wmma::row_major>(a, 16, b, 8, c, 8, wmma::mem_row_major);
}
extern "C" __global__ void wmma_f16(const half* a, const half* b, half* c) {
    __shared__ half shared[16 * 16];
    for (int i = threadIdx.x; i < 256; i += 32) shared[i] = a[i];
    __syncwarp();
    tile<16, 16, 16, half, half, half, wmma::col_major, wmma::row_major>(shared, 16, b, 16, c, 16, wmma::mem_col_major);
}
extern "C" __global__ void wmma_tf32(const float* a, const float* b, float* c) {
    tile<16, 16, 8, float, wmma::precision::tf32, float, wmma::row_major, wmma::col_major>(a, 8, b, 8, c, 16, wmma::mem_row_major);
}
extern "C" __global__ void wmma_s8(const signed char* a, const signed char* b, int* c) {
    tile<8, 32, 16, signed char, signed char, int, wmma::row_major, wmma::col_major>(a, 16, b, 16, c, 32, wmma::mem_row_major);
}
extern "C" __global__ void wmma_f64(const double* a, const double* b, double* c) {
    tile<8, 8, 4, double, double, double, wmma::row_major, wmma::col_major>(a, 4, b, 4, c, 8, wmma::mem_row_major);
}
