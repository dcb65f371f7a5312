"""The daemon of Python workers: it forks workers as Spark's does, and says nothing of one whose JVM has gone."""

import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import headwater
from headwater.cli.pipeline import deaf_children


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for the end of a process that is not its child")
def test_a_worker_that_is_left_by_its_jvm_ends_without_a_word(tmp_path: Path) -> None:
    with started(tmp_path) as (process, path):
        with socket.socket(socket.AF_UNIX) as jvm:
            worker = forked(jvm, path)
            ending = os.pidfd_open(worker)
            # Half a message, and no peer to report it to.
            jvm.sendall(struct.pack("!i", 1000))
        ended, _, _ = select.select([ending], [], [], 60)
        os.close(ending)
        _, output = process.communicate(timeout=60)  # the end of its input ends the daemon
    assert ended
    assert output == b""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks into /proc")
def test_under_a_pipeline_it_and_its_workers_go_on_after_sigterm(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ExitStack() as stack:
        with deaf_children():
            process, path = stack.enter_context(started(tmp_path))
        assert signal.getsignal(signal.SIGTERM) is before
        process.terminate()
        with socket.socket(socket.AF_UNIX) as jvm:
            worker = forked(jvm, path)
            status = Path(f"/proc/{worker}/status").read_text()
        process.communicate(timeout=60)
    assert int(status.partition("SigIgn:\t")[2][:16], 16) & 1 << (signal.SIGTERM - 1)


@contextmanager
def started(directory: Path) -> "Iterator[tuple[subprocess.Popen[bytes], str]]":
    """The daemon, and where it listens."""
    environ = {
        **os.environ,
        "PYTHONPATH": str(Path(headwater.__file__).absolute().parents[1]),
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": str(directory),
        "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "true",
        "SPARK_REUSE_WORKER": "1",
    }
    command = [sys.executable, "-m", "headwater.spark.daemon", "pyspark.worker"]
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        (length,) = struct.unpack("!i", process.stdout.read(4))
        yield process, process.stdout.read(length).decode()


def forked(jvm: socket.socket, path: str) -> int:
    """The process id of a worker for this connection."""
    jvm.settimeout(60)
    jvm.connect(path)
    (worker,) = struct.unpack("!i", jvm.recv(4, socket.MSG_WAITALL))
    return int(worker)
