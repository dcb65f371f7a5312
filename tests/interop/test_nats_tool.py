"""The `nats` tool (in Go) against the real nats-server and our broker: every command of a conversation says the same.

Runs where HEADWATER_NATS_TOOL names the tool; written with 0.2.4, and run with 0.5.1. What no two runs share (times, ids,
rates) is masked.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.headwater_server import start_headwater
from support.nats_server import start_nats_server

TOOL = os.environ.get("HEADWATER_NATS_TOOL", "")
pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(not TOOL, reason="HEADWATER_NATS_TOOL names no nats tool: its commands were not compared"),
]

CONFIG = """
server_name: one
jetstream { store_dir: "%s" }
accounts { SYS { users: [{user: sys, password: s}] }, A { jetstream: enabled, users: [{user: a, password: a}] } }
system_account: SYS
"""
MASKS = [
    (r"\x1b\[[0-9;]*m", ""),
    (r"\xa0", " "),  # go-cmp writes one or the other, so that no program relies on it
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)?", "TIME"),
    (r"\d\d:\d\d:\d\d(\.\d+)?", "TIME"),
    (r"\d+(\.\d+)?(µs|ms|ns|s)\b", "DURATION"),
    (r"[\d,.]+ msgs/sec ~ .*", "RATE"),
    (r" in DURATION.*", ""),
    (r"\b[NUA][A-Z0-9]{55}\b", "ID"),
    (r"Client ID: \d+", "Client ID"),
    (r"Active Consumers: \d+", "Active Consumers"),  # the tool's own leave when they leave
    (r"─+", "─"),  # tables are as wide as what they hold
    (r" +", " "),
]
COUNTERS = [  # of a server that has just started: how much it used and counted is its own
    (r'"server":\{.*?\},"data"', '"data"'),
    (r"[▏▎▍▌▋▊▉█]+", "█"),
    (r"\d[\d.,]*%?( ?[KMG]?i?B)?", "N"),
    (r" +", " "),
]

STREAMS = """
stream add T --subjects t.> --defaults
pub t.a one --count 3
pub t.b two -H A:1 -H A:2
stream report
stream info T
stream info T --json
stream subjects T
stream get T 1
stream get T -S t.b
stream rmm T 2 -f
stream edit T --max-msgs 5 -f
stream copy T T2 --subjects t2.>
stream seal T2 -f
pub t2.x hello
stream info T2
stream rm T2 -f
stream purge T -f --subject t.a
stream find --empty
stream state T
stream add Overlaps --subjects t.x --defaults
stream add Everything --subjects > --defaults
stream add Copies --subjects c --replicas 3 --defaults
stream add L --subjects l.> --max-age 1h --max-bytes 1MB --dupe-window 1m --max-msg-size 1k \
--discard new --max-msgs-per-subject 4 --discard-per-subject --deny-delete --deny-purge \
--description "hello world" --metadata a:b --no-allow-direct --defaults
stream info L --json
pub l.x 1 --count 6
stream rmm L 1 -f
stream purge L -f
stream add R --subjects r.> --defaults --allow-rollup
pub r.1 a -H Nats-Rollup:sub
request r.2 c
request r.2 c -H Nats-Expected-Last-Sequence:99
request r.2 c -H Nats-Msg-Id:1
request r.2 c -H Nats-Msg-Id:1
sub --stream R --count 3
sub r.> --last --stream R --count 1
stream purge R --seq 3 -f
stream rm R -f
stream ls
"""
CONSUMERS = """
stream add T --subjects t.> --defaults
pub t.a one --count 3
consumer add T C --pull --defaults
consumer next T C --count 2
consumer info T C
consumer info T C --json
consumer report T
consumer pause T C 1h -f
consumer resume T C -f
consumer copy T C C2
consumer edit T C2 --max-pending 5 -f
consumer add T D --pull --filter t.a --deliver last --ack all --replay original \
--max-deliver 3 --max-pending 7 --wait 3s --max-waiting 4 --inactive-threshold 1h \
--backoff linear --backoff-steps 3 --backoff-min 1s --backoff-max 2s \
--headers-only --sample 50 --description d --defaults
consumer info T D --json
consumer next T D --no-ack
consumer next T NOPE
consumer add T P --target push.out --deliver all --defaults --ack explicit --flow-control --heartbeat 5s
consumer info T P --json
consumer add T Q --target push.out2 --deliver new --defaults --deliver-group q
consumer find T --pull
consumer rm T C2 -f
consumer ls T
"""
STORES = """
kv add K --history 3 --ttl 1h
kv put K a 1
kv put K b 2
kv update K a 2 1
kv update K a 2 1
kv create K a 3
kv get K a
kv get K missing
kv history K a
kv ls K --display-value
kv del K a -f
kv purge K b -f
kv compact K -f
kv info K
kv ls
kv rm K -f
object add O
object put O FILE --name f --force --no-progress
object ls O
object info O f
object seal O -f
object ls
object rm O -f
"""
SERVERS = """
rtt
pub x hello --reply y -H A:b
request nobody.there c
account info
micro ls
server check connection
server check stream --stream NOPE
server check kv --bucket NOPE
bench pub x --msgs 1000 --no-progress
"""

SYSTEM = """
server ping 1
server report accounts
server report jetstream
server report cpu
server report health
server report gateways
server report leafnodes
server report routes
server check server --name one
server check server --name nobody
server check jetstream
server check stream --stream NOPE
server check request --subject nobody.there
server request gateways
server request leafnodes
server request routes
server request health-check
server account ls
server account purge NOBODY -f
account info
account report statistics
"""


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The real server's and ours, for the user of an account."""
    directory = tmp_path_factory.mktemp("tool")
    for name in ("real", "ours"):
        (directory / f"{name}.conf").write_text(CONFIG % (directory / name / "js"))
    with (
        start_nats_server(directory / "real", "-c", str(directory / "real.conf"), jetstream=False) as real,
        start_headwater(directory / "ours", "-c", str(directory / "ours.conf")) as ours,
    ):
        yield [server.url.replace("//", "//a:a@") for server in (real, ours)]


def output_of(url: str, command: str, directory: Path) -> str:
    """What the tool prints, without what no two runs share, and how it ends."""
    words = [TOOL, "--server", url, "--timeout", "5s", *shlex.split(command)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("NATS")}
    ended = subprocess.run(
        words, cwd=directory, env=environ | {"HOME": str(directory)}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
    )  # fmt: skip
    text = ended.stdout.replace(url.rpartition(":")[2], "PORT")
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    return f"{text}\nexit {ended.returncode}"


@pytest.mark.parametrize(
    "conversation", [STREAMS, CONSUMERS, STORES, SERVERS], ids=["streams", "consumers", "stores", "servers"]
)
def test_the_tool_is_told_the_same_by_both(urls: list[str], tmp_path: Path, conversation: str) -> None:
    (tmp_path / "FILE").write_bytes(b"content of a file\n" * 1000)
    commands = conversation.strip().splitlines()
    for command in commands:
        real, ours = (output_of(url, command, tmp_path) for url in urls)
        assert ours == real, command
        assert "unknown long flag" not in real, command
    for stream in re.findall(r"^stream add (\w+)", conversation, re.MULTILINE):
        for url in urls:
            output_of(url, f"stream rm {stream} -f", tmp_path)


def test_the_systems_user_is_told_the_same_by_both(urls: list[str], tmp_path: Path) -> None:
    for command in SYSTEM.strip().splitlines():
        real, ours = (output_of(url.replace("//a:a@", "//sys:s@"), command, tmp_path) for url in urls)
        for pattern, mask in COUNTERS:
            real, ours = re.sub(pattern, mask, real), re.sub(pattern, mask, ours)
        assert ours == real, command
        assert "unknown long flag" not in real, command


def test_what_the_tool_backs_up_from_one_it_restores_on_the_other(urls: list[str], tmp_path: Path) -> None:
    for number, url in enumerate(urls):
        output_of(url, "stream add B --subjects b.> --defaults", tmp_path)
        output_of(url, "pub b.a one --count 3", tmp_path)
        saved = output_of(url, f"stream backup B kept{number} --no-progress", tmp_path)
        assert saved.endswith("exit 0"), saved
        output_of(url, "stream rm B -f", tmp_path)
    for number, url in enumerate(reversed(urls)):
        came = output_of(url, f"stream restore kept{number} --no-progress", tmp_path)
        assert came.endswith("exit 0") and re.search(r"Messages: 3\b", came), came
        output_of(url, "stream rm B -f", tmp_path)
