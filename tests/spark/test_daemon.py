"""The daemon of Python workers: it forks workers as Spark's does, and says nothing of one whose JVM has gone."""

import os
import select
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import headwater


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for the end of a process that is not its child")
def test_a_worker_that_is_left_by_its_jvm_ends_without_a_word(tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "PYTHONPATH": str(Path(headwater.__file__).absolute().parents[1]),
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": str(tmp_path),
        "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "true",
        "SPARK_REUSE_WORKER": "1",
    }
    command = [sys.executable, "-m", "headwater.spark.daemon", "pyspark.worker"]
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        (length,) = struct.unpack("!i", process.stdout.read(4))
        path = process.stdout.read(length).decode()
        with socket.socket(socket.AF_UNIX) as jvm:
            jvm.settimeout(60)
            jvm.connect(path)
            (worker,) = struct.unpack("!i", jvm.recv(4, socket.MSG_WAITALL))
            ending = os.pidfd_open(worker)
            # Half a message, and nobody to tell that it is broken.
            jvm.sendall(struct.pack("!i", 1000))
        ended, _, _ = select.select([ending], [], [], 60)
        os.close(ending)
        _, said = process.communicate(timeout=60)  # the end of its input ends the daemon
    assert ended
    assert said == b""
