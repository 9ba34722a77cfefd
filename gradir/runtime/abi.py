"""The binary contract between compiled code and the runtime, version 2. Plain numbers, no imports.

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
        Device* device;                                                 // 64; null: no GPU
    };
    struct ErrorSlot { i64 code; i64 op_id; i64 operands[4]; };

`callback` runs library function `id` of the module on `args`, an array of buffers, inputs before outputs:

    struct Buffer { void* data; i64 dtype; i64 rank; const i64* sizes; const i64* strides; };   // strides in elements; row-major, no gaps

dtype: see ELEMENT_CODES. A C function that a user registers is `i32 f(const Call*)`, 0 meaning success; inputs are not to be written:

    struct Call { i64 inputs; i64 outputs; const Buffer* buffers; const char* config; };        // config: the configuration as JSON

Host code of a program for CUDA has memrefs in the memory of the device, which `allocate` and `free` give and take, and reaches it through
`device`, all but `read` in the order of one stream. `launch` and `copy` are `cuLaunchKernel` and `cuMemcpyDtoDAsync`, or do the same:

    struct Device {
        int  (*launch)(void* function, u32 grid_x, u32 grid_y, u32 grid_z, u32 block_x, u32 block_y, u32 block_z, u32 shared_bytes,
                       void* stream, void** parameters, void** extra);  // 0
        void* stream;                                                   // 8
        void** functions;                                               // 16; by launch of the module
        void** constants;                                               // 24; copies of its constants in the device's memory
        void* scratch;                                                  // 32; temporaries of one kernel of the program at a time
        int  (*copy)(void* to, void* from, size_t bytes, void* stream); // 40; both in the device's memory
        i32  (*read)(Context*, void* host, void* from, i64 bytes);      // 48; waits
        i32  (*write)(Context*, void* to, const void* host, i64 bytes); // 56; `host` may change when it returns
        i32  (*tensor_map)(Context*, void* map, void* base, const i64* words);  // 64; fills the 128 bytes of a tensor map
        i64  launches;                                                  // 72; how many so far in this call
        i32* recent;                                                    // 80; the last RECENT_LAUNCHES of them, a ring
        i64  reads;                                                     // 88; how many so far in this call
    };

A public function `f` is called through `i32 f.packed(Context*, i64* slots)`. The slots hold one pointer per memref argument in the
order inputs, outputs, arena (when there is one); a memref with dynamic dims is followed by the sizes of those dims. Scalars take one slot.
`gradir/dialects/target/abi.py` states the same numbers for the emitter; a test compares the two.
"""

VERSION = 2

OFFSET_VERSION = 0
OFFSET_PARALLEL_FOR = 8
OFFSET_ALLOCATE = 16
OFFSET_FREE = 24
OFFSET_ERROR = 32
OFFSET_THREADS = 40
OFFSET_CALLBACK = 48
OFFSET_USER = 56
OFFSET_DEVICE = 64
CONTEXT_BYTES = 72

DEVICE_LAUNCH = 0
DEVICE_STREAM = 8
DEVICE_FUNCTIONS = 16
DEVICE_CONSTANTS = 24
DEVICE_SCRATCH = 32
DEVICE_COPY = 40
DEVICE_READ = 48
DEVICE_WRITE = 56
DEVICE_TENSOR_MAP = 64
DEVICE_LAUNCHES = 72
DEVICE_RECENT = 80
DEVICE_READS = 88
DEVICE_BYTES = 96
RECENT_LAUNCHES = 64
TENSOR_MAP_BYTES = 128

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

STATUS_DEVICE = 4
"""The device refused a launch, a copy or a read; the error slot holds {4, op id, what the driver returned}."""

BUFFER_WORDS = 5
ELEMENT_CODES = {
    "f64": 1, "f32": 2, "f16": 3, "bf16": 4, "i1": 5, "i8": 6, "i16": 7, "i32": 8, "i64": 9,
    "ui8": 10, "ui16": 11, "ui32": 12, "ui64": 13, "f8E4M3FN": 14, "f8E5M2": 15,
}  # fmt: skip

ALIGNMENT = 64
"""Alignment in bytes of arenas, outputs and everything that `allocate` returns; the largest that may be asked for."""

PACKED_SUFFIX = ".packed"
KERNEL_TABLE = "gradir.kernels"
