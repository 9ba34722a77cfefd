// The example of the CUDA C++ Programming Guide in its own words: a box comes by a tensor copy, changes, and goes back by one.
#include <cuda.h>
#include <cuda/barrier>

using block_barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cde = cuda::device::experimental;

constexpr int ROWS = 16, COLUMNS = 32;

extern "C" __global__ void scale_tiles(const __grid_constant__ CUtensorMap map, float factor) {
    __shared__ alignas(128) float tile[ROWS][COLUMNS];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ block_barrier barrier;
    if (threadIdx.x == 0) {
        init(&barrier, blockDim.x);
        cde::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    const int x = blockIdx.x * COLUMNS, y = blockIdx.y * ROWS;
    block_barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_tensor_2d_global_to_shared(&tile, &map, x, y, barrier);
        token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof(tile));
    } else {
        token = barrier.arrive();
    }
    barrier.wait(std::move(token));
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) tile[i / COLUMNS][i % COLUMNS] *= factor;
    cde::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_tensor_2d_shared_to_global(&map, x, y, &tile);
        cde::cp_async_bulk_commit_group();
        cde::cp_async_bulk_wait_group_read<0>();
        (&barrier)->~block_barrier();
    }
}
