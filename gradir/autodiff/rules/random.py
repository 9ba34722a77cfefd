"""Random bits are integers: no derivative."""

from gradir.autodiff.registry import skip
from gradir.dialects import nd

for _op in (nd.RandomBitsOp, nd.Threefry2x32Op, nd.Philox4x32Op):
    skip(_op, "integers in, integers out")
