"""The binary contract between compiled code and the runtime, version 1. Plain numbers, no imports.

Every compiled function takes a pointer to a context first:

    struct Context {
        i64  version;                                                   // offset 0
        void (*parallel_for)(Context*, fn, void* closure, i64 n, i64 grain);   // 8; fn: void(Context*, void* closure, i64 lo, i64 hi)
        void* (*allocate)(Context*, i64 bytes, i64 align);              // 16; null when memory is short
        void (*free)(Context*, void*);                                  // 24
        ErrorSlot* error;                                               // 32
        i64  threads;                                                   // 40; how many threads this call may use, caller included
        i32  (*callback)(Context*, i64 id, void** args);                // 48; null: the host offers none
        void* user;                                                     // 56; the host's own
    };
    struct ErrorSlot { i64 code; i64 op_id; i64 operands[4]; };

`callback` runs library function `id` of the module on `args`, an array of buffers, inputs before outputs:

    struct Buffer { void* data; i64 dtype; i64 rank; const i64* sizes; const i64* strides; };   // strides in elements; row-major, no gaps

dtype: see ELEMENT_CODES. A C function that a user registers is `i32 f(const Call*)`, 0 meaning success; inputs are not to be written:

    struct Call { i64 inputs; i64 outputs; const Buffer* buffers; const char* config; };        // config: the configuration as JSON

A public function `f` is called through `i32 f.packed(Context*, i64* slots)`. The slots hold one pointer per memref argument in the
order inputs, outputs, arena (when there is one); a memref with dynamic dims is followed by the sizes of those dims. Scalars take one slot.
`gradir/dialects/target/abi.py` states the same numbers for the emitter; a test compares the two.
"""

VERSION = 1

OFFSET_VERSION = 0
OFFSET_PARALLEL_FOR = 8
OFFSET_ALLOCATE = 16
OFFSET_FREE = 24
OFFSET_ERROR = 32
OFFSET_THREADS = 40
OFFSET_CALLBACK = 48
OFFSET_USER = 56
CONTEXT_BYTES = 64

ERROR_CODE = 0
ERROR_OP_ID = 8
ERROR_OPERANDS = 16
ERROR_OPERAND_COUNT = 4
ERROR_BYTES = 48

STATUS_OK = 0
STATUS_ASSERTION = 1
STATUS_OUT_OF_MEMORY = 2
STATUS_CALLBACK = 3
"""A function called through `callback` failed; the error slot holds {3, op id, the status that it returned}."""

BUFFER_WORDS = 5
ELEMENT_CODES = {
    "f64": 1, "f32": 2, "f16": 3, "bf16": 4, "i1": 5, "i8": 6, "i16": 7, "i32": 8, "i64": 9,
    "ui8": 10, "ui16": 11, "ui32": 12, "ui64": 13, "f8E4M3FN": 14, "f8E5M2": 15,
}  # fmt: skip

ALIGNMENT = 64
"""Alignment in bytes of arenas, outputs and everything that `allocate` returns; the largest that may be asked for."""

PACKED_SUFFIX = ".packed"
KERNEL_TABLE = "gradir.kernels"
