"""Loop level to LLVM IR text, and that to object code (CPU) or PTX (CUDA): emission only."""
