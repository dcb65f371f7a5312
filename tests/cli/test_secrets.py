"""No password, token, seed or JWT is in the log (with every op traced), in an error or in any page of monitoring.

Every secret is a word of its own, so a leak names its place. Clients come in with the right ones, with wrong ones, with
the right ones in wrong places, and ask the system account about everything.
"""

import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.operator_chain import Chain, Key
from support.raw_wire import RawLink, connect_op, read_info

from headwater.errors import ConfigError
from headwater.model.nkey import NkeyKind
from headwater.monitoring.pages import PAGES
from headwater.server.config.schema import load

SECRETS = {
    "password": "sesame-password", "wrong": "sesame-wrong", "token": "sesame-token", "system": "sesame-system",
    "route": "sesame-route", "websocket": "sesame-websocket", "cookie": "sesame-cookie",
}  # fmt: skip
QUERIES = [
    "",
    "?auth=1&subs=detail&state=all",
    "?subs=1&acc=A",
    "?config=1&accounts=1&streams=1&consumers=1",
    "?acc=A",
    "?unused=1",
]
SYSTEM = [f"SERVER.PING.{page}" for page in ("VARZ", "CONNZ", "SUBSZ", "ROUTEZ", "ACCOUNTZ", "JSZ", "STATSZ")]
SYSTEM += [f"ACCOUNT.A.{page}" for page in ("INFO", "CONNZ", "CONNS", "SUBSZ")]

USERS = """
listen: 127.0.0.1:-1, http: 127.0.0.1:-1, server_name: n
accounts {{
    A {{ users: [ {{user: ann, password: {password}}} ] }}
    $SYS {{ users: [ {{user: sys, password: {system}}} ] }}
}}
cluster {{
    name: c, listen: 127.0.0.1:-1, authorization {{ user: route, password: {route} }}
    routes: ["nats://route:{route}@127.0.0.1:1"]
}}
websocket {{ listen: 127.0.0.1:-1, no_tls: true, authorization {{ username: web, password: {websocket} }} }}
"""
TOKEN = "listen: 127.0.0.1:-1, http: 127.0.0.1:-1, authorization {{ token: {token} }}"


class Run:
    """A server with every op traced, and what it has logged and shown."""

    def __init__(self, process: "subprocess.Popen[str]", port: int, http: int) -> None:
        self.process, self.port, self.http = process, port, http
        self.shown: dict[str, str] = {}

    def look_at_everything(self) -> None:
        """Every page with every option, the metrics, and what is no page."""
        for path in [*PAGES, "/metrics", "/", "/nothing"]:
            for query in QUERIES:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}{query}", timeout=20) as answer:
                        self.shown[path + query] = answer.read().decode()
                except urllib.error.HTTPError as error:
                    with error:
                        self.shown[path + query] = error.read().decode()

    def converse(self, *sent: bytes, **options: object) -> None:
        """A client that connects with these options, sends something, and reads the answers to their end."""
        with RawLink(self.port) as link:
            link.send(connect_op(**options) + b"".join(sent) + b"PING\r\nBOGUS\r\n")
            self.shown[f"client {options}"[:40]] = link.receive_end().decode("utf-8", "replace")


@contextmanager
def serving(directory: Path, config: str) -> Iterator[Run]:
    """Runs it; at the end its whole log is among what was shown."""
    file = directory / "server.conf"
    file.write_text(config)
    log = directory / "log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "headwater", "serve", "-DVV", "-c", str(file)], stderr=stderr, text=True
        )
        try:
            while "Server is ready" not in (text := log.read_text()):
                assert process.poll() is None, text
            ports = [
                re.search(pattern + r" \S+:(\d+)", text) for pattern in ("client connections on", "http monitor on")
            ]
            run = Run(process, *(int(found[1]) for found in ports if found))
            yield run
            process.terminate()
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()
    run.shown["log"] = log.read_text()


def leaks(run: Run, secrets: list[str]) -> list[tuple[str, str]]:
    """Which secret is shown where."""
    return [(place, secret) for place, text in run.shown.items() for secret in secrets if secret in text]


def test_passwords_are_nowhere(tmp_path: Path) -> None:
    with serving(tmp_path, USERS.format(**SECRETS)) as run:
        good = {"user": "ann", "pass": SECRETS["password"], "verbose": True}
        run.converse(b"SUB a 1\r\nPUB a 1\r\nx\r\n", **good)
        run.converse(**{**good, "pass": SECRETS["wrong"]})
        run.converse(auth_token=SECRETS["wrong"], jwt=SECRETS["wrong"], sig=SECRETS["wrong"])
        with RawLink(run.port) as link:
            link.send(b'CONNECT {"user":"ann","pass":"%b"' % SECRETS["wrong"].encode())
            link.send(b"\r\n")
            run.shown["broken json"] = link.receive_end().decode()
        with RawLink(run.port) as link:
            link.send(connect_op(user="sys", **{"pass": SECRETS["system"]}) + b"SUB in.* 1\r\n")
            link.settle()
            for subject in SYSTEM:
                link.send(b"PUB $SYS.REQ.%b in.1 31\r\n" % subject.encode() + b'{"auth":true,"state":2,"x":111}\r\n')
                run.shown[subject] = link.settle().decode()
            with RawLink(run.port) as inside:
                inside.send(connect_op(**good))
                inside.receive_until(b"+OK\r\n")
                run.look_at_everything()
    assert "ann" in run.shown["/connz?auth=1&subs=detail&state=all"], "it is there that users are shown"
    assert "<<- [CONNECT" in run.shown["log"], "ops are traced"
    assert leaks(run, list(SECRETS.values())) == []


def test_tokens_are_nowhere(tmp_path: Path) -> None:
    with serving(tmp_path, TOKEN.format(**SECRETS)) as run:
        run.converse(b"SUB a 1\r\n", auth_token=SECRETS["token"])
        run.converse(auth_token=SECRETS["wrong"])
        run.converse(**{"user": SECRETS["wrong"] + "-as-user", "pass": SECRETS["token"]})
        with RawLink(run.port) as inside:
            inside.send(connect_op(auth_token=SECRETS["token"]))
            inside.settle()
            run.look_at_everything()
    assert leaks(run, [SECRETS["token"]]) == []


def test_jwts_and_signatures_are_nowhere(tmp_path: Path) -> None:
    pytest.importorskip("nacl")
    chain, user = Chain(), Key(NkeyKind.USER, 1)
    jwt = chain.user(user, chain.a)
    with (
        serving(tmp_path, "listen: 127.0.0.1:-1, http: 127.0.0.1:-1\n" + chain.config()) as run,
        RawLink(run.port) as link,
    ):
        signature = user.sign(read_info(link.greeting)["nonce"])
        link.send(connect_op(jwt=jwt, sig=signature))
        assert link.settle() == b""
        run.converse(jwt=jwt, sig="sesame-wrong")
        run.converse(jwt=jwt[:-8] + "sesameXX", sig=signature)
        run.look_at_everything()
    body = jwt.split(".")[1]
    assert user.public in run.shown["/connz?auth=1&subs=detail&state=all"], "the public key is no secret"
    assert leaks(run, [jwt, body, jwt.split(".")[2], signature, "sesame"]) == []


def test_a_configuration_that_is_wrong_does_not_quote_its_secrets(tmp_path: Path) -> None:
    file = tmp_path / "server.conf"
    for text in (
        "authorization {{ user: a, password: {password}, token: {token} }}",
        "authorization {{ users: [{{user: a, password: {password}}}, {{user: a, password: {token}}}] }}",
        "authorization {{ user: a, password: {password}, bogus: 1 }}",
        "authorization {{ password: {password} }}",
        "cluster {{ listen: 127.0.0.1:-1, authorization {{ user: a, password: {password}, bogus: 1 }} }}",
    ):
        file.write_text(text.format(**SECRETS))
        with pytest.raises(ConfigError) as refused:
            load(str(file), lambda path: Path(path).read_text(), {}).finish()
        assert "sesame" not in str(refused.value) + repr(refused.value), text
