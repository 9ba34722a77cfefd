"""The Python frontend: a function on arrays becomes a level-1 module by being run once on tracers.

`arrays` is what the user's code sees, `trace` what records, one file per op family says how numpy's meaning maps to nd.
"""
