"""The context that every compiled function receives as its first argument: byte offsets of its fields, status codes.

The same numbers as `gradir.runtime.abi` (the compiler does not import the runtime; a test compares them).
"""

VERSION = 2

OFFSET_VERSION = 0  # i64
OFFSET_PARALLEL_FOR = 8  # ptr: void (ptr ctx, ptr fn, ptr closure, i64 n, i64 grain); fn: void (ptr ctx, ptr closure, i64 lo, i64 hi)
OFFSET_ALLOCATE = 16  # ptr: ptr (ptr ctx, i64 bytes, i64 align), null when there is no memory
OFFSET_FREE = 24  # ptr: void (ptr ctx, ptr p)
OFFSET_ERROR = 32  # ptr to the error slot {i64 code, i64 op_id, i64 operands[4]}
OFFSET_THREADS = 40  # i64
OFFSET_CALLBACK = 48  # ptr: i32 (ptr ctx, i64 id, ptr args)
OFFSET_USER = 56  # ptr
OFFSET_DEVICE = 64  # ptr to the device's table, null without one

DEVICE_LAUNCH = 0  # ptr: i32 (ptr function, i32 x 6 grid and block, i32 shared bytes, ptr stream, ptr parameters, ptr null)
DEVICE_STREAM = 8  # ptr
DEVICE_FUNCTIONS = 16  # ptr to functions, by launch of the module
DEVICE_CONSTANTS = 24  # ptr to addresses in the device's memory, by constant
DEVICE_SCRATCH = 32  # ptr: the device's memory for temporaries of one kernel
DEVICE_COPY = 40  # ptr: i32 (ptr to, ptr from, i64 bytes, ptr stream)
DEVICE_READ = 48  # ptr: i32 (ptr ctx, ptr host, ptr from, i64 bytes)
DEVICE_WRITE = 56  # ptr: i32 (ptr ctx, ptr to, ptr host, i64 bytes)
DEVICE_TENSOR_MAP = 64  # ptr: i32 (ptr ctx, ptr map, ptr base, ptr words)
DEVICE_LAUNCHES = 72  # i64
DEVICE_RECENT = 80  # ptr to i32 x RECENT_LAUNCHES, a ring
DEVICE_READS = 88  # i64
RECENT_LAUNCHES = 64
TENSOR_MAP_BYTES = 128

STATUS_OK = 0
STATUS_ASSERTION = 1
STATUS_OUT_OF_MEMORY = 2
STATUS_CALLBACK = 3
"""A function called through `callback` failed; the error slot holds {3, op id, the status that it returned}."""

STATUS_DEVICE = 4
"""The device refused a launch, a copy or a read; the error slot holds {4, op id, what the driver returned}."""

ARENA_ALIGNMENT = 64

BUFFER_WORDS = 5  # of what `callback` gets for each buffer: pointer, element type, rank, pointer to sizes, pointer to strides
ELEMENT_CODES = {
    "f64": 1, "f32": 2, "f16": 3, "bf16": 4, "i1": 5, "i8": 6, "i16": 7, "i32": 8, "i64": 9,
    "ui8": 10, "ui16": 11, "ui32": 12, "ui64": 13, "f8E4M3FN": 14, "f8E5M2": 15,
}  # fmt: skip
"""Element type -> its number in a buffer of `callback`."""
