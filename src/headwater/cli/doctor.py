"""`headwater doctor`: which optional parts are available on this machine, and what the missing ones are needed for.

A finding is a fact with an optional remark. Only a finding that makes some part of Headwater unusable is a problem and sets
the exit status to 1. Nothing is changed, except for one file that is written, synced and removed to time the disk
(`--dir`).
"""

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import headwater
from headwater.errors import EnvironmentProblem

SYNCS = 20  # enough for a median; 20 fsyncs take less than a second even on a slow disk
ENOUGH_FILES = 4096  # descriptors: a broker needs one per connection and two per segment
CLIENT_PORT = 4222

OPTIONAL = {
    "uvloop": "a faster event loop; extra fast",
    "bcrypt": "hashed passwords; extra auth",
    "pynacl": "nkeys and JWTs; extra auth",
    "wsproto": "WebSocket; extra websocket",
    "h11": "monitoring over HTTP; extra http",
    "prometheus-client": "/metrics; extra http",
    "xxhash": "Iggy; extra iggy",
    "aioquic": "Iggy over QUIC; extra iggy",
    "rich": "tables and progress of the commands of a client; extra cli",
    "pyarrow": "needed by spark only; extra spark",
}
"""Optional packages, and their uses."""

CONNECT = ("grpcio", "grpcio-status", "googleapis-common-protos", "zstandard", "pandas", "pyyaml")
"""Packages that pyspark needs for Spark Connect, and for declarative pipelines, which run through it."""


class Finding(NamedTuple):
    """One line of the report. `remark` explains the value, or how to improve it."""

    name: str
    value: str
    remark: str = ""
    problem: bool = False

    @property
    def installed(self) -> bool:
        return self.value != "not installed"


def main(argv: list[str]) -> int:
    """Print the report; returns 1 when a part of Headwater cannot work here."""
    parser = argparse.ArgumentParser(prog="headwater doctor", description="What this machine has.")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    parser.add_argument(
        "--dir", type=Path, default=Path.cwd(), help="directory whose fsync is timed (default: this one)"
    )
    arguments = parser.parse_args(argv)
    findings = list(examine(arguments.dir))
    if arguments.json:
        print(json.dumps({finding.name: finding._asdict() for finding in findings}, indent=2))
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            mark = "!" if finding.problem else " "
            remark = f"  ({finding.remark})" if finding.remark else ""
            print(f"{mark} {finding.name:<{width}}  {finding.value}{remark}")
    return int(any(finding.problem for finding in findings))


def examine(directory: Path) -> Iterator[Finding]:
    """All findings, in the order of the report."""
    yield Finding("headwater", headwater.__version__)
    yield Finding("python", f"{platform.python_version()} ({sys.executable})")
    yield Finding("platform", f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs")
    compiled_here = bool(headwater.__compiled__)
    advice = "" if compiled_here else "slower; ./hw setup compiles where gcc and Python's headers are"
    yield Finding("hot modules", "compiled" if compiled_here else "interpreted", advice)
    yield distribution("google-crc32c", "needed by streams", needed=True)
    for name, purpose in OPTIONAL.items():
        yield distribution(name, purpose)
    yield spark()
    yield spark_connect()
    yield java()
    yield open_files()
    yield client_port()
    yield sync_time(directory)


def distribution(name: str, purpose: str, needed: bool = False) -> Finding:
    """Whether a package is installed, from its metadata: importing pyspark for its version would take a second."""
    try:
        return Finding(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "not installed", purpose, problem=needed)


def spark() -> Finding:
    """Whether the installed pyspark is recent enough; it is not imported."""
    name = "pyspark"
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "not installed", "needed by spark only; extra spark")
    from headwater.spark.session import MINIMUM_PYSPARK, version_of

    if version_of(version) < MINIMUM_PYSPARK:
        return Finding(name, version, "too old for spark: pip install 'pyspark>=4.2'", problem=True)
    return Finding(name, version)


def spark_connect() -> Finding:
    """The packages that Spark Connect and spark-pipelines lack."""
    name = "spark connect"
    missing = [package for package in CONNECT if not distribution(package, "").installed]
    if missing:
        return Finding(name, f"without {', '.join(missing)}", "needed by spark-pipelines only; extra spark-connect")
    return Finding(name, "possible")


def java() -> Finding:
    """The Java that Spark would use."""
    from headwater.spark_runtime.java import java_home

    try:
        return Finding("java", str(java_home()))
    except EnvironmentProblem as problem:
        return Finding("java", "none that Spark accepts", f"{problem}; needed by spark only")


def open_files() -> Finding:
    """The limit on open descriptors, which limits the number of connections."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = soft != resource.RLIM_INFINITY and soft < ENOUGH_FILES
    return Finding("open files", f"{soft} (hard limit {hard})", "few for a broker: ulimit -n 65536" if few else "")


def client_port(port: int = CLIENT_PORT) -> Finding:
    """Whether the default client port is free on this machine."""
    import socket

    name = f"port {port}"
    try:
        with socket.create_server(("127.0.0.1", port)):
            return Finding(name, "free")
    except OSError as error:
        return Finding(name, "taken", f"{error.strerror}: a server runs already, or choose another with -p")


def sync_time(directory: Path, clock: Callable[[], float] = time.perf_counter) -> Finding:
    """The median time to make one 4 KiB batch durable: with sync = always, a single publisher waits this long per
    message."""
    name = "fdatasync"
    sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync
    times = []
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            for _ in range(SYNCS):
                file.write(bytes(4096))
                file.flush()
                started = clock()
                sync(file.fileno())
                times.append(clock() - started)
    except OSError as error:
        return Finding(
            name, f"cannot write to {directory}: {error.strerror}", "streams need a writable directory", True
        )
    median = statistics.median(times)
    remark = "suspiciously fast: this file system may not reach the disk" if median < 20e-6 else ""
    return Finding(name, f"{median * 1000:.3f} ms in {directory}", remark)
