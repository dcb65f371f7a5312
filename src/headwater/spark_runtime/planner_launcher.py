"""The program that Spark starts for a planner, where a template can fork one (`planner_template` says why).

    python -IS planner_launcher.py SOCKET PYTHON

Passes its standard files and its environment to the template, and then stands for the planner that was forked: signals to
this process go to that one, and this one ends when it does, with its status. If no template answers, it becomes the
planner itself. Each query waits for it, so until the planner runs it imports next to nothing: `json`, `socket`, `signal`
and `typing` would take two thirds of its time.
"""

import _socket
import os
import sys

TYPE_CHECKING = False  # that of `typing` takes a tenth of the launcher's time
if TYPE_CHECKING:
    from types import FrameType

DIRECTORY = "HEADWATER_PLANNERS"  # environment variable: the directory in which templates listen
RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"
PATIENCE = 20.0  # seconds for the template's answer; longer than it waits for us
END = b"\0\0"  # of the environment: NAME=value, with a zero byte between two


def fork(path: str) -> "tuple[_socket.socket, int] | None":
    """A forked planner: where its exit status will be read, and its process id. None where there is no template."""
    link = _socket.socket(_socket.AF_UNIX)
    try:
        link.settimeout(PATIENCE)
        link.connect(path)
        request = b"\0".join(b"%b=%b" % pair for pair in os.environb.items()) + END
        files = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
        sent = link.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
        link.sendall(request[sent:])
        planner = int(read_line(link))
    except (OSError, ValueError):
        link.close()
        return None
    link.settimeout(None)
    return link, planner


def read_line(link: "_socket.socket") -> bytes:
    """A line without its end, or what was sent of it. One byte at a time, so that the next line stays unread."""
    line = b""
    while (byte := link.recv(1)) not in (b"", b"\n"):
        line += byte
    return line


def stand_for(link: "_socket.socket", planner: int) -> int:
    """Pass signals on until the planner ends; its exit status."""
    import signal  # 7 ms, while the planner works already

    def pass_on(number: int, frame: "FrameType | None") -> None:
        try:
            os.kill(planner, number)
        except ProcessLookupError:
            pass  # its status is on its way

    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, pass_on)
    status = read_line(link)
    return int(status) if status else 1  # it was killed


def main(path: str, python: str) -> int:
    forked = fork(path)
    if forked is None:
        os.execv(python, [python, "-m", RUNNER])
    return stand_for(*forked)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
