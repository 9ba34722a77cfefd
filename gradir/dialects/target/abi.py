"""The context that every compiled function receives as its first argument: byte offsets of its fields, status codes.

The same numbers as `gradir.runtime.abi` (the compiler does not import the runtime; a test compares them).
"""

VERSION = 1

OFFSET_VERSION = 0  # i64
OFFSET_PARALLEL_FOR = 8  # ptr: void (ptr ctx, ptr fn, ptr closure, i64 n, i64 grain); fn: void (ptr ctx, ptr closure, i64 lo, i64 hi)
OFFSET_ALLOCATE = 16  # ptr: ptr (ptr ctx, i64 bytes, i64 align), null when there is no memory
OFFSET_FREE = 24  # ptr: void (ptr ctx, ptr p)
OFFSET_ERROR = 32  # ptr to the error slot {i64 code, i64 op_id, i64 operands[4]}
OFFSET_THREADS = 40  # i64
OFFSET_CALLBACK = 48  # ptr: i32 (ptr ctx, i64 id, ptr args)
OFFSET_USER = 56  # ptr

STATUS_OK = 0
STATUS_ASSERTION = 1
STATUS_OUT_OF_MEMORY = 2

ARENA_ALIGNMENT = 64
