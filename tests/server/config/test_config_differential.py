"""The same file through `nats-server -t -c` and through ours: both take it, or both refuse it.

Where they differ on purpose the row is in DIFFERENT, with the reason. A file that nats-server warns about counts as
taken, although `-t` then ends with status 1: it starts with it.
"""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.nats_server import nats_server_binary

from headwater.errors import ConfigError
from headwater.server.config.schema import load

SAME = [
    "port: 4222", "port = 4222", "port 4222", "port:4222;host:a", "port: 4222, host: a", "{port: 4222}",
    '{\n"port": 4222,\n"host": "a"\n}\n', "port: 4222\n}", "port:\n4222", "port\n4222", "port\n:4222", "server_name =",
    "server_name = ,", "server_name: ;port: 1", "server_name = \n", "server_name", "port: 4222 # c", "port: 4222 // c",
    "port: 4222# c", "server_name: a# c", "server_name: a//c", "server_name: a b", 'server_name: "a b"',
    "server_name: 'a", 'server_name: "a', 'server_name: "a\\n"', 'server_name: "a\\q"', "server_name: a\\tb",
    'server_name: "\\x41"', 'server_name: "\\x4"', "server_name: (\nabc\n)\n", "server_name: (\nabc\n)",
    "server_name: (abc)", "server_name: (\nabc\n) ", "max_payload: 1k", "max_payload: 1KiB", "max_payload: 64mb",
    "max_payload: 1kbb", "max_payload: 10s", "max_payload: 99999999999999999999", "max_payload: 1.5",
    "max_payload: 0x10", "max_payload: 4GB", "debug: yes", 'debug: "yes"', "debug: oui", "debug: 1",
    "ping_interval: 2m", 'ping_interval: "2m"', "ping_interval: 120", "ping_interval: 10s", "ping_interval: 1.5s",
    "ping_interval: 1m30s", 'ping_interval: "x"', "server_name: 2016-05-04T18:53:41Z", "server_name: 10-20",
    "server_name: 123abc", "server_name: 1.2.3.4", "server_name: 1.2.3.4a", "server_name: -a", "server_name: .a",
    "server_name: $HOME", "server_name: $NOT_SET_ANYWHERE", "x: abc\nserver_name: $x", "server_name: $x\nx: abc",
    "x: abc", "server_name: $2a$11$abc", 'server_name: "$x"', "listen: 127.0.0.1:4222", "listen: [::1]:4222",
    'listen: "[::1]:4222"', "listen: 4222", "listen: a", 'listen: "a:b"',
    "websocket { port: 1, no_tls: true, allowed_origins: [a, b] }",
    "websocket { port: 1, no_tls: true, allowed_origins: [a b] }",
    "websocket { port: 1, no_tls: true, allowed_origins: [a\nb] }",
    "websocket { port: 1, no_tls: true, allowed_origins: [a,] }",
    "websocket { port: 1, no_tls: true, allowed_origins: [,a] }", "websocket { port: 1, no_tls: true, headers {a: b} }",
    "websocket: { port: 1; no_tls: true", "websocket = { port = 1 no_tls = true }", "websocket{ port: 1, no_tls: true}",
    "websocket {port: 1, no_tls: true} port: 4222", "websocket {\nport:\n1\nno_tls: true}", "websocket {,}",
    "websocket { port: 1, no_tls: true,, }", "port: 1}", ": 4", "websocket { : 4 }", "include nothere.conf",
    'include "nothere.conf"', "include", 'include: "a"', "include 'inc.conf'", "include ./inc.conf # c",
    "include inc.conf; port: 4", "websocket { include inc.conf }", "PORT: 4", "port: 4\nport: 5", "foo: 1",
    '"po rt": 4', 'port: "4222"', "port: 4222 4223", "debug: true}", "port:4222\r\nhost: a\r\n",
    "server_name: abc\0def", "resolver_preload: { A: x }", 'http: "0.0.0.0:8222"', "http: localhost:-1", "port: [1",
    "a {b {c {d: 1}}}", "authorization { user: a, pass: b, token: c }", "authorization { foo: 1 }",
    "authorization: { users = [ {user: a, password: b} {user: c, password: d} ] }",
    "authorization: { users = [ {user: a, password: b}\n {user: c, password: d} ] }",
    "authorization: { users = [ {user: a}, {user: a} ] }",
    'authorization { timeout: "1.5s" }', "authorization { users: [{user: a, permissions: {publish: a..b}}] }",
    "jetstream: enabled", 'jetstream: "nope"', "jetstream { store_dir: /tmp/x, max_mem: 1G, max_file: 10G }",
    'jetstream { max_mem: "1G" }', 'jetstream { max_mem: "1Gi" }', "jetstream { foo: 1 }", "server_name: a]",
    "server_name: a}", "server_name: a{", "server_name: a'b'", "server_name: a(b)", 'lame_duck_duration: "10s"',
    "lame_duck_duration: 60", 'write_deadline: "5s"', "accounts: [A, B]", "accounts: {A: {}}", "accounts: {A: x}",
    "accounts {PW: x, A {users: [{user: a, password: $PW}]}}", "accounts {A {exports [{stream: a, service: b}]}}",
    "accounts {A {exports: [{stream: a}]}, B {imports: [{stream: {account: A, subject: a}}]}}",
    "accounts {B {imports: [{stream: {account: A, subject: a}}]}}", "cluster {port: -1, routes: ['nats://a:1']}",
    "cluster {port: -1, authorization {token: x}}", "cluster {name: 'a b'}", "max_sub_tokens: 300",
]  # fmt: skip

DIFFERENT = {
    "max_pending: 8eb": "nats-server lets the number overflow",
    "port:1 } host: a": "nats-server reads on behind a brace that nothing opened",
    "{ port: 4222 }\nhost: a": "nats-server reads on behind the end of the document",
    "max_payload: -1": "nats-server would then refuse every message",
    "cluster {name: a, routes: ['nats://a:1']}": "nats-server finds at the start only that there is no port",
    "websocket {port: 1}": "nats-server finds at the start only that there is no tls",
    "no_auth_user: x": "nats-server finds at the start only that there is no such user",
    "http: 1, https: 2": "nats-server finds at the start only that they exclude each other",
    "mqtt {port: 1}": "we do not do it, and say so",
    "gateway {name: x, port: 1}": "we do not do it, and say so",
    "leafnodes {port: 1, compression: s2_fast}": "we do not do it, and say so",
    "leafnodes {remotes: [{account: X}]}": "nats-server finds at the start only that there is no url",
}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Path, bool]]]:
    """For each text its file, and whether nats-server takes it; two at a time, one process each."""
    directory = tmp_path_factory.mktemp("config")
    (directory / "inc.conf").write_text("max_connections: 5\n")

    def ask(number: int, text: str) -> tuple[Path, bool]:
        path = directory / f"{number}.conf"
        path.write_text(text, newline="", encoding="utf-8")
        command = [str(nats_server_binary()), "-t", "-c", str(path)]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        warned = answer.stderr.strip().endswith("should be converted to a duration")
        return path, answer.returncode == 0 or warned

    texts = [*SAME, *DIFFERENT]
    with ThreadPoolExecutor(2) as pool:
        yield dict(zip(texts, pool.map(ask, range(len(texts)), texts), strict=True))


def ours(path: Path) -> bool:
    def read(name: str) -> str:
        return Path(name).read_bytes().decode("utf-8")

    try:
        load(str(path), read, {"HOME": "/root"}).finish()
    except ConfigError:
        return False
    return True


@pytest.mark.interop
def test_both_take_a_file_or_both_refuse_it(theirs: dict[str, tuple[Path, bool]]) -> None:
    verdicts = {text: (theirs[text][1], ours(theirs[text][0])) for text in SAME}
    assert {text: verdict for text, verdict in verdicts.items() if verdict[0] != verdict[1]} == {}
    assert 40 < sum(taken for taken, _ in verdicts.values()) < len(SAME) - 40, "the table is one-sided"


@pytest.mark.interop
@pytest.mark.parametrize("text", DIFFERENT)
def test_where_they_differ_nats_server_takes_it(theirs: dict[str, tuple[Path, bool]], text: str) -> None:
    path, taken = theirs[text]
    assert (taken, ours(path)) == (True, False), DIFFERENT[text]
