"""`python -m gradir.targets.object_worker`: objects of LLVM IR texts, one after the other, in a process beside the compiler's.

A request on standard input is one line of JSON {"triple", "cpu", "features", "bytes"} and then so many bytes of text; the answer on
standard output is one line {"bytes"} and the object, or one line {"error"}. The process ends at the end of its input, or when nothing
was asked of it for `IDLE_SECONDS`. Imports llvmlite and nothing of the compiler, so that it is ready soon.
"""

from __future__ import annotations

import json
import select
import sys
from typing import BinaryIO

from gradir.targets.code_generation import object_of

IDLE_SECONDS = 20.0


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the input ends or falls silent."""
    while True:
        if not select.select([requests], [], [], IDLE_SECONDS)[0]:
            return
        line = requests.readline()
        if not line:
            return
        request = json.loads(line)
        text = requests.read(request["bytes"]).decode()
        try:
            code = object_of(text, request["triple"], request["cpu"], request["features"])
        except RuntimeError as error:
            answers.write(json.dumps({"error": str(error)}).encode() + b"\n")
        else:
            answers.write(json.dumps({"bytes": len(code)}).encode() + b"\n" + code)
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
