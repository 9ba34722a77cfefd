"""`gradir-reduce`: the smallest program that still shows a failure.

`search` repeats the edits of `edits/` as long as the caller's question stays answered with yes; `command` is the command line, `lines`
shrinks text that is no valid IR. From Python, with the question as a function:

    from gradir.tools.reduce import reduce_module
    small = reduce_module(text, lambda candidate: crashes(candidate))
"""

from gradir.tools.reduce.lines import reduce_lines
from gradir.tools.reduce.search import Interesting, Progress, reduce_module

__all__ = ["Interesting", "Progress", "reduce_lines", "reduce_module"]
