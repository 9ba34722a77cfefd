"""Native code that the runtime generates for itself: thread pool, memory pool, call wrapper. LLVM IR text, compiled once per process."""
