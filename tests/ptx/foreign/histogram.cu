// Counts in shared memory by atomics, then into global memory by atomics; floats are weighed too.
extern "C" __global__ void histogram(const unsigned char* bytes, const float* weights, unsigned* counts, float* sums, double* total, int n) {
    __shared__ unsigned local[256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x) local[k] = 0;
    __syncthreads();
    double mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&local[bytes[i]], 1u);
        atomicAdd(&sums[bytes[i]], weights[i]);
        mine += weights[i];
    }
    atomicAdd(total, mine);
    __syncthreads();
    for (int k = threadIdx.x; k < 256; k += blockDim.x) if (local[k]) atomicAdd(&counts[k], local[k]);
}
