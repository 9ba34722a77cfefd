// c = a b of bf16 on tensor cores: tiles of 64 x 64 x 32 in three stages of cp.async, swizzled rows, ldmatrix, mma.sync.m16n8k16.
// k is a multiple of 32; m and n may be anything that is a multiple of 8.
#include <cuda_bf16.h>

constexpr int TILE = 64, DEPTH = 32, STAGES = 3;

// Row r of a tile of A has 64 bytes, four pieces of 16; of B (a row of k) 128 bytes, eight pieces. Pieces are swizzled by the row.
__device__ unsigned place_a(int row, int piece) { return row * 64 + ((piece ^ (row >> 1 & 3)) * 16); }
__device__ unsigned place_b(int row, int piece) { return row * 128 + ((piece ^ (row & 7)) * 16); }

__device__ void copy(unsigned to, const void* from, bool inside) {
    int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes));
}

extern "C" __global__ void __launch_bounds__(128) mma_gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int m, int n, int k) {
    __shared__ alignas(128) unsigned char left[STAGES][TILE * DEPTH * 2], right[STAGES][DEPTH * TILE * 2];
    int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, warp_m = warp / 2 * 32, warp_n = warp % 2 * 32;
    int first_m = blockIdx.y * TILE, first_n = blockIdx.x * TILE, steps = k / DEPTH;
    unsigned left_at = (unsigned)__cvta_generic_to_shared(left), right_at = (unsigned)__cvta_generic_to_shared(right);
    auto fetch = [&](int step) {
        int stage = step % STAGES;
        for (int q = 0; q < 2; ++q) {
            int at = thread + 128 * q, row = at / 4, piece = at % 4;
            bool inside = first_m + row < m;
            copy(left_at + stage * TILE * DEPTH * 2 + place_a(row, piece), a + (size_t)(inside ? first_m + row : 0) * k + step * DEPTH + piece * 8, inside);
            row = at / 8, piece = at % 8;
            inside = first_n + piece * 8 < n;
            copy(right_at + stage * TILE * DEPTH * 2 + place_b(row, piece), b + (size_t)(step * DEPTH + row) * n + (inside ? first_n + piece * 8 : 0), inside);
        }
    };
    for (int step = 0; step < STAGES - 1; ++step) {
        if (step < steps) fetch(step);
        asm volatile("cp.async.commit_group;");
    }
    float sums[2][4][4] = {};
    for (int step = 0; step < steps; ++step) {
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        if (step + STAGES - 1 < steps) fetch(step + STAGES - 1);
        asm volatile("cp.async.commit_group;");
        unsigned from_a = left_at + step % STAGES * TILE * DEPTH * 2, from_b = right_at + step % STAGES * TILE * DEPTH * 2;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            unsigned x[2][4], y[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                unsigned at = from_a + place_a(warp_m + 16 * i + lane % 16, half * 2 + lane / 16);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(x[i][0]), "=r"(x[i][1]), "=r"(x[i][2]), "=r"(x[i][3]) : "r"(at));
            }
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                unsigned at = from_b + place_b(half * 16 + lane % 16, warp_n / 8 + 2 * j + lane / 16);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(y[j][0]), "=r"(y[j][1]), "=r"(y[j][2]), "=r"(y[j][3]) : "r"(at));
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    float* s = sums[i][j];
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]) : "r"(x[i][0]), "r"(x[i][1]), "r"(x[i][2]), "r"(x[i][3]), "r"(y[j / 2][j % 2 * 2]), "r"(y[j / 2][j % 2 * 2 + 1]));
                }
        }
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int h = 0; h < 2; ++h) {
                int row = first_m + warp_m + 16 * i + lane / 4 + 8 * h, column = first_n + warp_n + 8 * j + lane % 4 * 2;
                if (row < m && column < n) *(float2*)(c + (size_t)row * n + column) = make_float2(sums[i][j][2 * h], sums[i][j][2 * h + 1]);
            }
}
