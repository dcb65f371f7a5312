"""A planner of Spark's, and what the JVM does with it: start it, have it make a reader, ask it."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyspark.serializers import SpecialLengths
from pyspark.sql.streaming import python_streaming_source_runner as runner

import headwater
from headwater.spark_runtime import planner_template as template
from headwater.spark_runtime.planner_launcher import DIRECTORY

WAIT = 60.0


def text(value: str) -> bytes:
    return struct.pack("!i", len(value)) + value.encode()


class Planner:
    """What Spark's JVM has of a planner: a process, and a connection."""

    def __init__(self, python: Path, directory: Path, name: str) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.settimeout(WAIT)
        self.listener.bind(str(directory / f"{name}.jvm"))
        self.listener.listen()
        environ = {
            **os.environ,
            "PYTHONPATH": str(Path(headwater.__file__).absolute().parents[1]),
            "PYTHON_WORKER_FACTORY_SOCK_PATH": str(directory / f"{name}.jvm"),
            DIRECTORY: str(directory),
        }
        command = [str(python), "-m", template.RUNNER]
        self.process = subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        self.jvm, _ = self.listener.accept()
        self.jvm.settimeout(WAIT)
        self.answers = self.jvm.makefile("rb")
        self.pid = self.number()

    def make_reader(self, options: dict[str, str] | None = None) -> int:
        """0 when the planner has made a reader of a stream, with the columns that the options ask for."""
        from pyspark import cloudpickle

        from pyspark_nats import DefaultSource

        made = DefaultSource(options or {"stream": "ORDERS"})
        source = cloudpickle.dumps(made)  # type: ignore[no-untyped-call]
        parts = [text(f"{sys.version_info.major}.{sys.version_info.minor}"), text("/nowhere"), struct.pack("!i", 0)]
        parts += [struct.pack("!i", len(source)), source, text(made.schema().json())]
        self.jvm.sendall(b"".join(parts) + struct.pack("!i", 1000))
        return self.number()

    def number(self) -> int:
        (value,) = struct.unpack("!i", self.answers.read(4))
        return int(value)

    def ask(self, function: int, *texts: str) -> None:
        self.jvm.sendall(struct.pack("!i", function) + b"".join(map(text, texts)))

    def initial_offset(self) -> str:
        self.ask(runner.INITIAL_OFFSET_FUNC_ID)
        return self.answers.read(self.number()).decode()

    def latest_offset(self, start: str) -> str:
        self.ask(runner.LATEST_OFFSET_ADMISSION_CONTROL_FUNC_ID, start, '{"_type":"ReadAllAvailable"}')
        return self.answers.read(self.number()).decode()

    def plan(self, start: str, end: str) -> tuple[int, "pa.Table | None"]:
        """The number of partitions, and the rows that come with them."""
        self.ask(runner.PARTITIONS_FUNC_ID, start, end)
        count = self.number()
        for _ in range(count):
            self.answers.read(self.number())
        if self.number() != runner.NON_EMPTY_PYARROW_RECORD_BATCHES:
            return count, None
        assert self.number() == SpecialLengths.START_ARROW_STREAM
        return count, pa.ipc.open_stream(self.answers).read_all()

    def end(self) -> tuple[int, bytes]:
        """End the connection, as the JVM does; the exit status of the process that it started, and what it printed."""
        self.answers.close()
        self.jvm.close()
        self.listener.close()
        _, output = self.process.communicate(timeout=WAIT)
        return self.process.returncode, output


@contextmanager
def planner(python: Path, directory: Path, name: str) -> Iterator[Planner]:
    made = Planner(python, directory, name)
    try:
        yield made
    finally:
        made.end()
