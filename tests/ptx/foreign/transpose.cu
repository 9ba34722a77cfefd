// A tile of 32 x 32 through shared memory with one column of padding.
extern "C" __global__ void transpose(const float* x, float* y, int rows, int columns) {
    __shared__ float tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (row + k < rows && column < columns) tile[threadIdx.y + k][threadIdx.x] = x[(size_t)(row + k) * columns + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x;
    row = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (row + k < columns && column < rows) y[(size_t)(row + k) * rows + column] = tile[threadIdx.x][threadIdx.y + k];
}
