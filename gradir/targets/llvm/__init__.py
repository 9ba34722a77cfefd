"""Level 4 (loops, vectors, scalars) to LLVM IR text: emission only, no optimisation decisions."""
