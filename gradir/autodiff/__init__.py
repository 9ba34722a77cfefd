"""`ad.*` requests become level-1 functions: readable, optimisable and differentiable again.

`differentiate` is the pass, `reverse/` the transformation, `rules/` the derivative of each op family.
Relies on `gradir.dialects` alone; knows nothing of loops, buffers or targets.
"""
