"""Upstream MLIR's dialects under upstream's names and syntax: xDSL's classes, and ours where xDSL falls short.

Every pass takes its op classes from here (`from gradir.dialects.upstream import arith, vector`), so that one op name has
exactly one class in a program. The levels 2 to 4 that we print are accepted by `mlir-opt` of LLVM 22.
"""
