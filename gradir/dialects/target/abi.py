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
STATUS_CALLBACK = 3
"""A function called through `callback` failed; the error slot holds {3, op id, the status that it returned}."""

ARENA_ALIGNMENT = 64

BUFFER_WORDS = 5  # of what `callback` gets for each buffer: pointer, element type, rank, pointer to sizes, pointer to strides
ELEMENT_CODES = {
    "f64": 1, "f32": 2, "f16": 3, "bf16": 4, "i1": 5, "i8": 6, "i16": 7, "i32": 8, "i64": 9,
    "ui8": 10, "ui16": 11, "ui32": 12, "ui64": 13, "f8E4M3FN": 14, "f8E5M2": 15,
}  # fmt: skip
"""Element type -> its number in a buffer of `callback`."""
