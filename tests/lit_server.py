"""Fork server for lit: loads the compiler once, forks a child for each command of a test.

    lit_server.py SOCKET FOLDER        started by lit.cfg.py, which holds our stdin open; at its end FOLDER is removed

A request is a length with three file descriptors attached, then tool, working folder, number of arguments, arguments and
environment, separated by NUL; the answer is the exit code. If the client goes away (a timeout of lit), its child is killed.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import os
import select
import shutil
import signal
import socket
import sys
import traceback

TOOLS = {
    "gradir": "gradir.tools.main:run",
    "gradir-opt": "gradir.tools.opt:run",
    "gradir-translate": "gradir.tools.translate:run",
    "gradir-run": "gradir.tools.run:run",
    "gradir-reduce": "gradir.tools.reduce.command:run",
}


def preload() -> None:
    """Import what tests use; what is missing or broken will show in the test that needs it."""
    from gradir.dialects.registry import make_context
    from gradir.driver.passes import PASSES

    context = make_context()
    for name in list(context.registered_dialect_names):
        quietly(lambda name=name: context.get_optional_dialect(name))
    for target, _ in PASSES.values():
        if isinstance(target, str):
            quietly(lambda target=target: importlib.import_module(target.partition(":")[0]))
    for module in (*(t.partition(":")[0] for t in TOOLS.values()), "gradir.tools.opt_file", "gradir.reference", "filecheck.main", "numpy"):
        quietly(lambda module=module: importlib.import_module(module))


def quietly(action) -> None:
    with contextlib.suppress(Exception):
        action()


def run(tool: str, arguments: list[str]) -> int:
    """One command, in the child."""
    try:
        if tool == "filecheck":
            from filecheck.main import main

            return main(["filecheck", *arguments]) or 0
        module, _, name = TOOLS[tool].partition(":")
        return getattr(importlib.import_module(module), name)(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
        return 70


def receive(client: socket.socket) -> tuple[list[str], list[int]]:
    head, ancillary, _, _ = client.recvmsg(4, socket.CMSG_SPACE(12))
    if len(head) != 4 or not ancillary:
        return [], []
    wanted, data = int.from_bytes(head, "little"), b""
    while len(data) < wanted and (piece := client.recv(wanted - len(data))):
        data += piece
    return data.decode("utf-8", "surrogateescape").split("\0"), list(array.array("i", ancillary[0][2]))


def child(parts: list[str], streams: list[int]) -> None:
    """Become the command; never returns."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    tool, folder, count, *rest = parts
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(item.partition("=")[::2] for item in rest[int(count) :])
    code = run(tool, rest[: int(count)])
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def answer(client: socket.socket, status: int) -> None:
    with contextlib.suppress(OSError):
        client.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "little", signed=True))
    client.close()


def serve(path: str) -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(64)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    os.write(1, b"ready\n")
    running: dict[int, socket.socket] = {}  # process -> who waits for it
    while True:
        ready, _, _ = select.select([listener, 0, woken, *running.values()], [], [])
        if woken in ready:
            os.read(woken, 4096)
        while running:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if process == 0:
                break
            answer(running.pop(process), status)
        for process, client in running.items():
            if client in ready and not client.recv(1):  # the client has gone: its child is reaped above, later
                os.kill(process, signal.SIGKILL)
        if 0 in ready and not os.read(0, 1):
            return
        if listener not in ready:
            continue
        client, _ = listener.accept()
        parts, streams = receive(client)
        if not streams:
            client.close()
            continue
        process = os.fork()
        if process == 0:
            child(parts, streams)
        for stream in streams:
            os.close(stream)
        running[process] = client


def main() -> None:
    path, folder = sys.argv[1:]
    preload()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        serve(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
