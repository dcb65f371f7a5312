"""A process from which the planners of later queries are forked.

Spark starts a Python process for each streaming query (the planner), and offers no daemon for it as it does for workers:
`python -m pyspark.sql.streaming.python_streaming_source_runner`. Half a second of CPU goes into its imports, of pyspark,
pyarrow, numpy and this package, more than into all else of a query over a thousand rows. So the first planner, when it has
imported everything, forks a process that stays, and `planner_launcher`, which `session` puts in the place of Python, has
that one fork the next planners. They share its memory, too.

It ends with the JVM whose first planner it came from, or after `IDLE_SECONDS`. It never serves another JVM, nor a process
whose Python was set up otherwise. Whatever fails here, the launcher starts Python as Spark meant it.
Only where `pidfd_open` is (Linux); elsewhere no planner is forked.
"""

import atexit
import gc
import hashlib
import importlib
import os
import select
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from headwater.spark_runtime.cache import keep
from headwater.spark_runtime.planner_launcher import DIRECTORY, END

RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"
RESOLVING = ("encodings.idna",)  # imported by the first look-up of a host's name
IDLE_SECONDS = 600.0
PATIENCE = 10.0  # seconds in which a launcher must have written all of its output

LAUNCHER = """\
#!/bin/sh
case "${{{directory}:+set}} $*" in
"set -m {runner}") [ -S "${directory}/$PPID" ] && exec {python} -IS {launcher} "${directory}/$PPID" {python} ;;
esac
exec {python} "$@"
"""

_made: dict[int, Path] = {}  # by process id, because a fork of a driver has no session


def launcher_python(python: Path, cache: Path) -> Path:
    """A script below `cache` that runs `python`, except that it asks for a fork where a planner is wanted."""
    here = Path(__file__).absolute().with_name("planner_launcher.py")
    words = {"python": shlex.quote(str(python)), "launcher": shlex.quote(str(here))}
    text = LAUNCHER.format(directory=DIRECTORY, runner=RUNNER, **words)
    key = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return keep(cache / "python" / f"planners-{key}" / "python", text, 0o755)


def directory_of_this_process() -> Path:
    """Where templates of this driver's JVMs listen: a directory of its own, removed at exit."""
    if os.getpid() not in _made:
        _made[os.getpid()] = made = Path(tempfile.mkdtemp(prefix="headwater-planners-"))
        atexit.register(_remove, os.getpid(), made)
    return _made[os.getpid()]


def _remove(owner: int, directory: Path) -> None:
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


def offer(imports: Sequence[str] = ()) -> bool:
    """Called in a planner that has made its reader: fork a template, unless there is one. Returns whether it did.
    `imports`: modules that planners need later, and would import one by one.
    """
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    directory = os.environ.get(DIRECTORY, "")
    able = hasattr(os, "pidfd_open") and hasattr(main, "get_sock_file_to_executor") and hasattr(main, "main")
    if spec is None or spec.name != RUNNER or not able or not Path(directory or os.devnull).is_dir():
        return False
    jvm = os.getppid()
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(f"{directory}/{jvm}")
        except OSError:  # there is one already; or the path is too long
            return False
        listener.listen(16)
        for name in (*imports, *RESOLVING):
            importlib.import_module(name)
        if os.fork():
            return True
        # The stack of the first planner is never returned to: its files are closed below Python.
        try:
            _serve(_alone(listener), jvm)
        finally:
            os._exit(0)


def _alone(listener: socket.socket) -> socket.socket:
    """Give up all that belongs to the first planner, but the listener."""
    kept = listener.detach()
    if kept != 3:
        kept = os.dup2(kept, 3, inheritable=False)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    gc.freeze()  # or collections in planners would copy the pages that they share
    return socket.socket(fileno=kept)


def _serve(listener: socket.socket, jvm: int) -> None:
    """Fork planners until the JVM ends, or none is wanted for `IDLE_SECONDS`."""
    name = Path(listener.getsockname())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    end = os.pidfd_open(jvm)
    try:
        while True:
            ready, _, _ = select.select([listener.fileno(), end], [], [], IDLE_SECONDS)
            if listener.fileno() not in ready:
                if end in ready:
                    _leave(name)
                return
            with listener.accept()[0] as link:
                link.settimeout(PATIENCE)
                try:
                    files, environ = _request(link)
                except (OSError, ValueError, EOFError):
                    continue  # the launcher starts Python itself
                if _python_settings(environ) == _python_settings(os.environ) and not os.fork():
                    _run(link, files, environ, (listener.fileno(), end))
                for file in files:
                    os.close(file)
    finally:
        name.unlink(missing_ok=True)


def _leave(name: Path) -> None:
    """The JVM has ended, with a driver that was killed perhaps, which then leaves its directory to the last template."""
    name.unlink(missing_ok=True)
    with suppress(OSError):
        name.parent.rmdir()


def _request(link: socket.socket) -> tuple[list[int], dict[str, str]]:
    """The standard files and the environment for a planner."""
    data, files, _, _ = socket.recv_fds(link, 1 << 16, 3)
    try:
        while not data.endswith(END):
            more = link.recv(1 << 16)
            if not more:
                raise EOFError
            data += more
        pairs = (os.fsdecode(entry).partition("=") for entry in data.removesuffix(END).split(b"\0"))
        return list(files), {name: value for name, _, value in pairs}
    except BaseException:
        for file in files:
            os.close(file)
        raise


def _python_settings(environ: Any) -> dict[str, str]:
    """What had to be known when modules were imported."""
    return {
        name: value
        for name, value in environ.items()
        if name.startswith(("PYTHON", "VIRTUAL_ENV")) and not name.startswith("PYTHON_")
    }


def _run(link: socket.socket, files: list[int], environ: dict[str, str], others: tuple[int, ...]) -> None:
    """In the fork: be a planner, and end."""
    status = 1
    try:
        for number in others:
            os.close(number)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(environ)
        del os.environ[DIRECTORY]  # it offers no template: the JVM's is there
        time.tzset()
        link.settimeout(None)
        link.sendall(b"%d\n" % os.getpid())
        main: Any = sys.modules["__main__"]
        with main.get_sock_file_to_executor(timeout=None) as connection:
            main.main(connection, connection)
        status = 0
    except SystemExit as ending:
        status = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException as error:  # noqa: BLE001  (as Python does at the end of a program)
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
            link.sendall(b"%d\n" % (status & 255))
        except OSError:
            pass  # the JVM and the launcher have gone
        os._exit(status & 255)
