// Sorts each block's keys in shared memory, and carries the payload of 8 bytes along.
extern "C" __global__ void bitonic_sort(int* keys, unsigned long long* payload, int n) {
    extern __shared__ unsigned long long memory[];
    unsigned long long* values = memory;
    int* order = (int*)(memory + n);
    for (int i = threadIdx.x; i < n; i += blockDim.x) { order[i] = keys[blockIdx.x * n + i]; values[i] = payload[blockIdx.x * n + i]; }
    for (int size = 2; size <= n; size *= 2)
        for (int stride = size / 2; stride; stride /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < n; i += blockDim.x) {
                int j = i ^ stride;
                if (j > i && (order[i] > order[j]) == ((i & size) == 0)) {
                    int key = order[i]; order[i] = order[j]; order[j] = key;
                    unsigned long long value = values[i]; values[i] = values[j]; values[j] = value;
                }
            }
        }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) { keys[blockIdx.x * n + i] = order[i]; payload[blockIdx.x * n + i] = values[i]; }
}
