"""A process that has imported the pipeline and forks: what is to be killed need not import it, seconds each time.

    python -m tests.faults.fork_server <socket>               the fork server; it ends with the process that started it
    python -IS tests/faults/fork_server.py <socket> <verb> .. one child: `tests.faults.killed`, with this process's outputs

The second one stands for its child: it ends as the child ended, by the same signal, and the child ends with it.
"""

import json
import os
import signal
import socket
import sys
from typing import Any

_SIZE = 4  # bytes of a length, or of a status as `waitpid` has it


def call(where: str, arguments: list[str]) -> int:
    """Have a child run with our environment and outputs; return its exit status, or die of what it died of."""
    order = json.dumps({"arguments": arguments, "environment": dict(os.environ)}).encode()
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(where)
        socket.send_fds(line, [len(order).to_bytes(_SIZE, "big")], [1, 2])
        line.sendall(order)
        ended = line.recv(_SIZE, socket.MSG_WAITALL)
    if len(ended) != _SIZE:
        raise SystemExit("the fork server ended before its child")
    code = os.waitstatus_to_exitcode(int.from_bytes(ended, "big"))
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


def serve(where: str) -> None:
    """Fork for each order and tell its caller how the child ended; return in a child, which then does as it was told."""
    import selectors  # noqa: PLC0415  # the caller starts quicker without
    from pathlib import Path  # noqa: PLC0415

    selector = selectors.DefaultSelector()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{where}.draft")
    listener.listen()
    Path(f"{where}.draft").rename(where)
    selector.register(listener, selectors.EVENT_READ, None)
    selector.register(sys.stdin, selectors.EVENT_READ, None)
    running: dict[int, tuple[socket.socket, int]] = {}  # pid -> its caller, and the file that tells its end
    while True:
        for key, _ in selector.select():
            if key.fileobj is sys.stdin:  # whoever started us has gone
                raise SystemExit
            if key.fileobj is listener:
                caller, _ = listener.accept()
                pid, outputs, order = _fork(caller)
                if pid == 0:
                    selector.close()
                    for each in (listener, *(line for line, _ in running.values())):
                        each.close()
                    _become(outputs, order)
                    return
                running[pid] = caller, os.pidfd_open(pid)
                selector.register(caller, selectors.EVENT_READ, pid)
                selector.register(running[pid][1], selectors.EVENT_READ, pid)
            elif key.data in running:
                line, ended = running[key.data]
                if key.fileobj is line:  # the caller was killed, and its child goes with it
                    os.killpg(key.data, signal.SIGKILL)
                _, status = os.waitpid(key.data, 0)
                selector.unregister(line)
                selector.unregister(ended)
                os.close(ended)
                if key.fileobj is not line:
                    line.sendall(status.to_bytes(_SIZE, "big"))
                line.close()
                del running[key.data]


def _fork(caller: socket.socket) -> tuple[int, list[int], dict[str, object]]:
    head, outputs, *_ = socket.recv_fds(caller, _SIZE, 2)
    order = json.loads(caller.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
    pid = os.fork()
    if pid == 0:
        os.setsid()  # whose whole group it takes with it when it dies
        caller.close()
    else:
        for output in outputs:
            os.close(output)
        while os.getsid(pid) != pid:  # a group to be killed
            pass
    return pid, outputs, order


def _become(outputs: list[int], order: dict[str, Any]) -> None:
    """Take over what makes a process one of its own: outputs, environment and arguments."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor, output in enumerate(outputs, start=1):
        os.dup2(output, descriptor)
        os.close(output)
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = ["killed", *order["arguments"]]


def main() -> None:
    """Import what the children need, and serve."""
    import gc  # noqa: PLC0415

    import penstock_spark.copy  # noqa: F401, PLC0415
    from penstock.wire.columnar import warm_up  # noqa: PLC0415
    from tests.faults import killed  # noqa: PLC0415

    warm_up()
    gc.freeze()  # else a child that collects copies what it shares with us
    serve(sys.argv[1])
    killed.main()


if __name__ == "__main__":
    if sys.argv[2:]:
        sys.exit(call(sys.argv[1], sys.argv[2:]))
    main()
