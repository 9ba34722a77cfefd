"""LLVM IR of `callback` in the context: finds the library function by its id; C functions are called without Python.

`user` of the context points to one row {ptr function, ptr data} per id, made by `gradir.runtime.library.table`. A row's function is
`i32 (ptr ctx, ptr data, ptr buffers)`: `@gradir.call_c`, whose data is {ptr C function, i64 inputs, i64 outputs, ptr config}, or a
trampoline of ctypes, which takes the GIL by itself.
"""

from __future__ import annotations

CALLBACKS_IR = """
%Call = type { i64, i64, ptr, ptr }
%Target = type { ptr, i64, i64, ptr }

define i32 @gradir.callback(ptr %context, i64 %id, ptr %buffers) {
  %user.at = getelementptr i8, ptr %context, i64 56
  %rows = load ptr, ptr %user.at
  %row = getelementptr { ptr, ptr }, ptr %rows, i64 %id
  %function = load ptr, ptr %row
  %data.at = getelementptr { ptr, ptr }, ptr %row, i64 0, i32 1
  %data = load ptr, ptr %data.at
  %status = call i32 %function(ptr %context, ptr %data, ptr %buffers)
  ret i32 %status
}

define i32 @gradir.call_c(ptr %context, ptr %data, ptr %buffers) {
  %call = alloca %Call, align 16
  %inputs.from = getelementptr %Target, ptr %data, i64 0, i32 1
  %inputs = load i64, ptr %inputs.from
  store i64 %inputs, ptr %call
  %outputs.from = getelementptr %Target, ptr %data, i64 0, i32 2
  %outputs = load i64, ptr %outputs.from
  %outputs.at = getelementptr %Call, ptr %call, i64 0, i32 1
  store i64 %outputs, ptr %outputs.at
  %buffers.at = getelementptr %Call, ptr %call, i64 0, i32 2
  store ptr %buffers, ptr %buffers.at
  %config.from = getelementptr %Target, ptr %data, i64 0, i32 3
  %config = load ptr, ptr %config.from
  %config.at = getelementptr %Call, ptr %call, i64 0, i32 3
  store ptr %config, ptr %config.at
  %function = load ptr, ptr %data
  %status = call i32 %function(ptr %call)
  ret i32 %status
}
"""
