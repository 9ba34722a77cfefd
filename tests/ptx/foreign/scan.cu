// Inclusive sums of any length in one pass over blocks: each block publishes its total, later ones look back (decoupled look-back).
struct Status { int state; float value; };

extern "C" __global__ void scan(const float* x, float* y, volatile float* totals, volatile float* prefixes, int* states, int* ticket, int n) {
    __shared__ float sums[8];
    __shared__ float before;
    __shared__ int number;
    if (threadIdx.x == 0) number = atomicAdd(ticket, 1);
    __syncthreads();
    int at = number * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float value = at < n ? x[at] : 0.0f;
    for (int step = 1; step < 32; step *= 2) {
        float left = __shfl_up_sync(0xffffffff, value, step);
        if (lane >= step) value += left;
    }
    if (lane == 31) sums[warp] = value;
    __syncthreads();
    for (int k = 0; k < warp; ++k) value += sums[k];
    if (threadIdx.x == blockDim.x - 1) {
        totals[number] = value;
        __threadfence();
        atomicExch(&states[number], 1);
        float sum = 0.0f;
        for (int k = number - 1; k >= 0;) {
            int state = atomicAdd(&states[k], 0);
            if (state == 0) continue;
            __threadfence();
            if (state == 2) { sum += prefixes[k]; break; }
            sum += totals[k--];
        }
        before = sum;
        prefixes[number] = sum + value;
        __threadfence();
        atomicExch(&states[number], 2);
    }
    __syncthreads();
    if (at < n) y[at] = value + before;
}
