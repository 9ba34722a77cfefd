"""Heuristics per kind of kernel: which tile, blocks, packing and parallel loops fit a group of ops and a machine."""
