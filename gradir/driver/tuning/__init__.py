"""The tuner: schedules of the hot kernels by measurement, kept for later compilations.

`explain` says which kernels are hot; `alternatives` what could replace a kernel (schedules, a vendor's library); `trials` measures it
against the heuristic's choice in a child process; `search` decides, `records` keeps decisions, `apply` puts them into later programs,
`tune` drives.
"""
