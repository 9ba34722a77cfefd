// A sum over the whole grid in one launch: tiles of cooperative groups, then grid.sync(), then the first block adds up.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void cooperative_sum(const float* x, float* partial, float* y, int n) {
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    __shared__ float sums[32];
    float sum = 0.0f;
    for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += x[i];
    sum = cg::reduce(warp, sum, cg::plus<float>());
    if (warp.thread_rank() == 0) sums[warp.meta_group_rank()] = sum;
    block.sync();
    if (block.thread_rank() == 0) {
        float all = 0.0f;
        for (int k = 0; k < warp.meta_group_size(); ++k) all += sums[k];
        partial[block.group_index().x] = all;
    }
    grid.sync();
    if (block.group_index().x == 0 && block.thread_rank() == 0) {
        float all = 0.0f;
        for (int k = 0; k < gridDim.x; ++k) all += partial[k];
        *y = all;
    }
}
