"""`sink-loops`: a loop around elementwise nests becomes one nest with the loop in its body, so that what it carries stays in registers."""

from gradir.lowering.sink_loops.sink import SinkLoops

__all__ = ["SinkLoops"]
