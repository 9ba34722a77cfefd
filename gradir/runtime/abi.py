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

ALIGNMENT = 64
"""Alignment in bytes of arenas, outputs and everything that `allocate` returns; the largest that may be asked for."""

PACKED_SUFFIX = ".packed"
KERNEL_TABLE = "gradir.kernels"
