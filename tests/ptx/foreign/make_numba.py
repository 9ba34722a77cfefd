"""PTX that numba-cuda makes without a GPU: `python make_numba.py FOLDER` with numba-cuda installed (NUMBA_CUDA_DEFAULT_PTX_CC unset)."""

import sys
from pathlib import Path

from numba import cuda, float32, int32, int64, types


def numba_saxpy(x, y, factor):
    at = cuda.grid(1)
    if at < x.size:
        y[at] = factor * x[at] + y[at]


def numba_block_sum(x, y):
    shared = cuda.shared.array(128, float32)
    at, thread = cuda.grid(1), cuda.threadIdx.x
    shared[thread] = x[at] if at < x.size else float32(0)
    cuda.syncthreads()
    step = 64
    while step > 0:
        if thread < step:
            shared[thread] += shared[thread + step]
        cuda.syncthreads()
        step //= 2
    if thread == 0:
        cuda.atomic.add(y, 0, shared[0])


def numba_mandelbrot(counts, width, height, limit):
    x, y = cuda.grid(2)
    if x < width and y < height:
        cr, ci = -2.0 + 3.0 * x / width, -1.5 + 3.0 * y / height
        zr, zi, count = 0.0, 0.0, 0
        while zr * zr + zi * zi <= 4.0 and count < limit:
            zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
            count += 1
        counts[y, x] = count


KERNELS = {
    numba_saxpy: (types.void(float32[::1], float32[::1], float32), (8, 0)),
    numba_block_sum: (types.void(float32[::1], float32[::1]), (9, 0)),
    numba_mandelbrot: (types.void(int32[:, ::1], int64, int64, int64), (7, 5)),
}

if __name__ == "__main__":
    for kernel, (signature, capability) in KERNELS.items():
        text, _ = cuda.compile_ptx(kernel, signature, cc=capability, abi="numba", device=False)
        (Path(sys.argv[1]) / f"{kernel.__name__}.ptx").write_text(text)
