// y = alpha a x + beta y in double, vectors of two, the last block to finish adds the checksum (threadfence pattern).
extern "C" __global__ void matvec(const double2* a, const double2* x, double* y, double alpha, double beta, int pairs, unsigned* done, double* checksum) {
    __shared__ double sums[4];
    __shared__ bool last;
    double sum = 0.0;
    for (int j = threadIdx.x; j < pairs; j += blockDim.x) {
        double2 u = a[(size_t)blockIdx.x * pairs + j], v = x[j];
        sum = fma(u.x, v.x, fma(u.y, v.y, sum));
    }
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = sums[0] + sums[1] + sums[2] + sums[3];
        y[blockIdx.x] = alpha * sum + beta * y[blockIdx.x];
        __threadfence();
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        double all = 0.0;
        for (int k = 0; k < gridDim.x; ++k) all += y[k];
        *checksum = all;
    }
}
