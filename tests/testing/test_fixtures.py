"""The fixtures work in another project's test suite, strict warnings and all; so does the documentation's example."""

import re
import subprocess
import sys
from pathlib import Path

from support.checkout import ROOT

STRICT = "[pytest]\nfilterwarnings = error\n"


def run(directory: Path, tests: str) -> str:
    (directory / "test_theirs.py").write_text(tests)
    (directory / "pytest.ini").write_text(STRICT)
    (directory / "conftest.py").write_text('pytest_plugins = ["headwater.testing"]\n')
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path), "PATH": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(directory)]
    answer = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return answer.stdout + answer.stderr


def test_the_example_of_the_documentation_passes(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    examples = [
        code for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if "def test_" in code
    ]
    assert len(examples) == 1
    assert "2 passed" in run(tmp_path, examples[0])


def test_each_test_has_a_broker_of_its_own_and_streams_where_it_asks_for_them(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        """
import json, socket

seen = []

def greeting(broker):
    with socket.create_connection(("127.0.0.1", broker.port), 5) as link, link.makefile("rb") as lines:
        return json.loads(lines.readline()[5:])

def test_one(broker):
    seen.append(greeting(broker)["server_id"])
    assert "jetstream" not in greeting(broker)

def test_two(broker, jetstream_broker, broker_factory):
    ids = {greeting(one)["server_id"] for one in (broker, jetstream_broker, broker_factory(max_payload=100))}
    assert len(ids | set(seen)) == 4
    assert greeting(jetstream_broker)["jetstream"] is True

def test_left_open(broker):
    global kept, lines
    kept = socket.create_connection(("127.0.0.1", broker.port), 5)
    lines = kept.makefile("rb")
    assert lines.readline().startswith(b"INFO")

def test_closed_behind_it():
    with kept, lines:
        assert lines.readline() == b""
""",
    )
    assert "4 passed" in output, output
