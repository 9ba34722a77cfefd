// Five points of a plane with a halo in dynamic shared memory, weights from constant memory.
__constant__ float weights[5] = {0.5f, 0.125f, 0.125f, 0.125f, 0.125f};

extern "C" __global__ void stencil(const float* __restrict__ x, float* __restrict__ y, int height, int width) {
    extern __shared__ float tile[];
    int pitch = blockDim.x + 2, tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    auto at = [&](int r, int c) { return r < 0 || r >= height || c < 0 || c >= width ? 0.0f : x[r * width + c]; };
    tile[ty * pitch + tx] = at(row, column);
    if (threadIdx.x == 0) tile[ty * pitch] = at(row, column - 1);
    if (threadIdx.x == blockDim.x - 1) tile[ty * pitch + tx + 1] = at(row, column + 1);
    if (threadIdx.y == 0) tile[tx] = at(row - 1, column);
    if (threadIdx.y == blockDim.y - 1) tile[(ty + 1) * pitch + tx] = at(row + 1, column);
    __syncthreads();
    if (row < height && column < width)
        y[row * width + column] = weights[0] * tile[ty * pitch + tx] + weights[1] * tile[ty * pitch + tx - 1] +
            weights[2] * tile[ty * pitch + tx + 1] + weights[3] * tile[(ty - 1) * pitch + tx] + weights[4] * tile[(ty + 1) * pitch + tx];
}
