"""Resolvers of accounts: pushes, lists, packs and deletions at nats-server and at ours, with the same files and tokens."""

import http.server
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import leafs
from support.certificates import Certificates, make_certificates
from support.configured_servers import KINDS, Running, serve
from support.leafs import OURS, REAL, LeafServer
from support.operator_chain import Chain, Key, token
from support.raw_wire import Answer, RawLink, closed, connect_op, read_info, still_open

from headwater.errors import ConfigError
from headwater.model.nkey import NkeyKind
from headwater.server.config.schema import load

pytestmark = pytest.mark.interop

CHAIN = Chain()
USER, ADMIN, STRANGER = Key(NkeyKind.USER, 70), Key(NkeyKind.USER, 71), Key(NkeyKind.OPERATOR, 72)
NEW = Key(NkeyKind.ACCOUNT, 73)
LATER = Key(NkeyKind.USER, 74)
REFUSED = closed(b"-ERR 'Authorization Violation'\r\n")
NEWER = 1_700_000_100


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def config(resolver: str, preload: bool = True) -> str:
    lines = "\n".join(f"  {key}: {jwt}" for key, jwt in CHAIN.accounts.items()) if preload else ""
    preloaded = f"resolver_preload: {{\n{lines}\n}}\n" if preload else ""
    return f"operator: {CHAIN.operator_jwt}\nsystem_account: {CHAIN.system.public}\n{preloaded}resolver: {resolver}\n"


def full(directory: Path, more: str = "allow_delete: true, ") -> str:
    return config(f'{{ type: full, {more}dir: "{directory}", interval: "2m" }}')


def enter(port: int, account: Key, user: Key = USER) -> RawLink:
    link = RawLink(port)
    nonce = read_info(link.greeting)["nonce"]
    link.send(connect_op(jwt=CHAIN.user(user, account), sig=user.sign(nonce)))
    return link


def try_to_enter(port: int, account: Key) -> Answer:
    with enter(port, account) as link:
        return link.answer(b"")


class Admin:
    """A user of the system account."""

    def __init__(self, server: Running | LeafServer) -> None:
        self.link = enter(server.port, CHAIN.system, ADMIN)
        self.link.send(b"SUB answers 1\r\n")
        assert self.link.settle() == b""

    def __enter__(self) -> "Admin":
        return self

    def __exit__(self, *_: object) -> None:
        self.link.close()

    def receive(self) -> bytes:
        while not (line := self.link.receive_line()).startswith((b"MSG ", b"HMSG ")):
            assert line == b"PING\r\n", line
        words = line.split()
        assert line.startswith(b"MSG"), self.link.receive(int(words[-1]))
        return self.link.receive(int(words[-1]) + 2)[:-2]

    def send(self, subject: str, payload: str | bytes = b"") -> None:
        body = payload.encode() if isinstance(payload, str) else payload
        self.link.send(b"PUB %s answers %d\r\n%s\r\n" % (subject.encode(), len(body), body))

    def ask(self, subject: str, payload: str | bytes = b"") -> dict[str, Any]:
        self.send(subject, payload)
        document: dict[str, Any] = json.loads(self.receive())
        assert document.pop("server")["id"].startswith("N")
        return document


def updated(key: Key, message: str = "jwt updated") -> dict[str, Any]:
    return {"data": {"account": key.public, "code": 200, "message": message}}


def account(key: Key, issued: int = NEWER, signed_by: Key | None = None, **more: Any) -> str:
    jwt = CHAIN.account(key, signed_by=signed_by, **more)
    part = json.loads(_decoded(jwt.split(".")[1]))
    return token(signed_by or CHAIN.operator, key.public, part["nats"], iat=issued)


def _decoded(part: str) -> bytes:
    import base64

    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def deletion(signer: Key, *accounts: str, about: str = "") -> str:
    return token(signer, about or signer.public, {"type": "generic", "version": 2, "accounts": list(accounts)})


def test_an_account_that_is_pushed_may_come_and_is_kept(kind: str, tmp_path: Path) -> None:
    directory = tmp_path / "accounts"
    with serve(kind, tmp_path, full(directory)) as server:
        assert try_to_enter(server.port, NEW) == REFUSED
        with Admin(server) as admin:
            assert admin.ask("$SYS.REQ.CLAIMS.UPDATE", account(NEW)) == updated(NEW)
            assert try_to_enter(server.port, NEW) == still_open()
            listed = sorted([*CHAIN.accounts, NEW.public])
            assert sorted(admin.ask("$SYS.REQ.CLAIMS.LIST")["data"]) == listed
            admin.send(f"$SYS.REQ.ACCOUNT.{NEW.public}.CLAIMS.LOOKUP")
            assert admin.receive() == account(NEW).encode()
            admin.send(f"$SYS.REQ.ACCOUNT.{Key(NkeyKind.ACCOUNT, 99).public}.CLAIMS.LOOKUP")
            assert admin.receive() == b""
    assert (directory / f"{NEW.public}.jwt").read_text() == account(NEW)
    with serve(kind, tmp_path, full(directory)) as server:
        assert try_to_enter(server.port, NEW) == still_open()


def test_a_pack_has_every_account_until_the_digests_are_equal(kind: str, tmp_path: Path) -> None:
    with serve(kind, tmp_path, full(tmp_path / "accounts")) as server, Admin(server) as admin:
        admin.send("$SYS.REQ.CLAIMS.PACK", bytes(32))
        packed = {admin.receive() for _ in range(3)}
        assert packed == {f"{key}|{jwt}".encode() for key, jwt in CHAIN.accounts.items()}
        assert admin.receive() == b""
        admin.send("$SYS.REQ.CLAIMS.PACK", _digest(CHAIN.accounts.values()))
        assert admin.receive() == b""


def _digest(tokens: Any) -> bytes:
    import hashlib

    mixed = 0
    for each in tokens:
        mixed ^= int.from_bytes(hashlib.sha256(each.encode()).digest(), "big")
    return mixed.to_bytes(32, "big")


def test_what_is_wrong_with_a_push_is_said_and_changes_nothing(kind: str, tmp_path: Path) -> None:
    with serve(kind, tmp_path, full(tmp_path / "accounts")) as server, Admin(server) as admin:
        other = f"$SYS.REQ.ACCOUNT.{CHAIN.b.public}.CLAIMS.UPDATE"
        for subject, body, about in (
            ("$SYS.REQ.CLAIMS.UPDATE", "junk", "n/a"),
            ("$SYS.REQ.CLAIMS.UPDATE", "", "n/a"),
            ("$SYS.REQ.CLAIMS.UPDATE", CHAIN.user(USER, CHAIN.a), "n/a"),
            (other, account(NEW), CHAIN.b.public),
        ):
            answer = admin.ask(subject, body)
            assert (answer["error"]["account"], answer["error"]["code"]) == (about, 500)
            assert answer["error"]["description"].startswith("jwt update resulted in error - ")
        assert sorted(admin.ask("$SYS.REQ.CLAIMS.LIST")["data"]) == sorted(CHAIN.accounts)


def test_an_account_of_a_stranger_never_comes_in_and_is_not_kept_here(kind: str, tmp_path: Path) -> None:
    with serve(kind, tmp_path, full(tmp_path / "accounts")) as server, Admin(server) as admin:
        answer = admin.ask("$SYS.REQ.CLAIMS.UPDATE", account(NEW, signed_by=STRANGER))
        assert ("data" in answer) is (kind == "nats-server")  # which keeps it, and finds out when it is used
        assert try_to_enter(server.port, NEW) == REFUSED


def test_clients_that_a_push_revokes_have_to_leave(kind: str, tmp_path: Path) -> None:
    with (
        serve(kind, tmp_path, full(tmp_path / "accounts")) as server,
        Admin(server) as admin,
        enter(server.port, CHAIN.a) as stays,
        enter(server.port, CHAIN.a, Key(NkeyKind.USER, 74)) as leaves,
    ):
        assert stays.settle() == leaves.settle() == b""
        push = account(CHAIN.a, revocations={Key(NkeyKind.USER, 74).public: NEWER})
        assert admin.ask(f"$SYS.REQ.ACCOUNT.{CHAIN.a.public}.CLAIMS.UPDATE", push) == updated(CHAIN.a)
        assert leaves.receive_end() == b"-ERR 'User Authentication Revoked'\r\n"
        assert stays.settle() == b""


def test_an_operator_deletes_accounts_and_their_clients_have_to_leave(kind: str, tmp_path: Path) -> None:
    directory = tmp_path / "accounts"
    with (
        serve(kind, tmp_path, full(directory)) as server,
        Admin(server) as admin,
        enter(server.port, CHAIN.a) as link,
    ):
        assert link.settle() == b""
        for order, reason in (
            (deletion(STRANGER, CHAIN.a.public), "not trusted"),
            (deletion(CHAIN.operator, CHAIN.a.public, about=STRANGER.public), "not self signed"),
            (deletion(CHAIN.operator, CHAIN.system.public), "not allowed to delete system account"),
        ):
            output = admin.ask("$SYS.REQ.CLAIMS.DELETE", order)["error"]["description"]
            assert output.endswith(f" failed - {reason}")
        answer = admin.ask("$SYS.REQ.CLAIMS.DELETE", deletion(CHAIN.operator, CHAIN.a.public))
        assert answer == {"data": {"code": 200, "message": "deleted 1 accounts"}}
        assert b"Account Authentication Expired" in link.receive_end()
    names = {path.name for path in directory.iterdir() if path.name.startswith(CHAIN.a.public)}
    assert names == {f"{CHAIN.a.public}.jwt.deleted"}


def test_without_allow_delete_nothing_is_deleted(kind: str, tmp_path: Path) -> None:
    with serve(kind, tmp_path, full(tmp_path / "accounts", "")) as server, Admin(server) as admin:
        output = admin.ask("$SYS.REQ.CLAIMS.DELETE", deletion(CHAIN.operator, CHAIN.a.public))["error"]["description"]
        assert output.endswith(" failed - delete must be enabled in server config")
        assert try_to_enter(server.port, CHAIN.a) == still_open()


def test_a_cache_takes_a_push_for_accounts_in_use_only(kind: str, tmp_path: Path) -> None:
    text = config(f'{{ type: cache, dir: "{tmp_path / "cache"}" }}')
    with serve(kind, tmp_path, text) as server, Admin(server) as admin:
        assert admin.ask("$SYS.REQ.CLAIMS.UPDATE", account(NEW)) == updated(NEW, "jwt update cache skipped")
        with enter(server.port, CHAIN.a) as link:
            assert link.settle() == b""
            assert admin.ask("$SYS.REQ.CLAIMS.UPDATE", account(CHAIN.a)) == updated(CHAIN.a, "jwt updated cache")


def test_a_push_without_a_directory_changes_an_account_that_is_in_use(kind: str, tmp_path: Path) -> None:
    with serve(kind, tmp_path, config("MEMORY")) as server, Admin(server) as admin:
        subject = "$SYS.REQ.ACCOUNT.{}.CLAIMS.UPDATE"
        assert admin.ask(subject.format(NEW.public), account(NEW)) == updated(NEW, "jwt update skipped")
        with enter(server.port, CHAIN.a) as link:
            assert link.settle() == b""
            push = account(CHAIN.a, limits={"conn": 0})
            assert admin.ask(subject.format(CHAIN.a.public), push) == updated(CHAIN.a)
        assert try_to_enter(server.port, CHAIN.a).closed


def test_limits_of_a_pushed_account_hold_for_the_clients_that_are_there(kind: str, tmp_path: Path) -> None:
    with serve(kind, tmp_path, full(tmp_path / "accounts")) as server, Admin(server) as admin:
        with enter(server.port, CHAIN.a) as link:
            assert link.answer(b"SUB a 1\r\nPUB x 5\r\nlarge\r\n") == still_open()
            push = account(CHAIN.a, limits={"subs": 2, "payload": 4})
            assert admin.ask("$SYS.REQ.CLAIMS.UPDATE", push) == updated(CHAIN.a)
            assert link.answer(b"SUB b 2\r\nSUB c 3\r\n") == still_open(b"-ERR 'maximum subscriptions exceeded'\r\n")
            assert link.answer(b"PUB x 5\r\nlarge\r\n") == closed(b"-ERR 'Maximum Payload Violation'\r\n")
        push = account(CHAIN.a, NEWER + 1, limits={"subs": 2, "payload": 4})
        assert admin.ask("$SYS.REQ.CLAIMS.UPDATE", push) == updated(CHAIN.a)
        with enter(server.port, CHAIN.a) as link:
            assert link.settle() == b""
            assert admin.ask("$SYS.REQ.CLAIMS.UPDATE", account(CHAIN.a, NEWER + 2)) == updated(CHAIN.a)
            assert link.answer(b"SUB a 1\r\nSUB b 2\r\nSUB c 3\r\nPUB x 5\r\nlarge\r\n") == still_open()


def test_permissions_that_a_pushed_account_gives_by_default_hold_for_the_clients_that_are_there(
    kind: str, tmp_path: Path
) -> None:
    with serve(kind, tmp_path, full(tmp_path / "accounts")) as server, Admin(server) as admin:
        with enter(server.port, CHAIN.a) as link:
            assert link.answer(b"SUB shut 1\r\nSUB open 2\r\n") == still_open()
            push = account(CHAIN.a, default_permissions={"pub": {"deny": ["no"]}, "sub": {"deny": ["shut"]}})
            assert admin.ask("$SYS.REQ.CLAIMS.UPDATE", push) == updated(CHAIN.a)
            assert link.answer(b"PUB shut 0\r\n\r\nPUB open 0\r\n\r\nPUB no 0\r\n\r\n") == still_open(
                b"""-ERR 'Permissions Violation for Subscription to "shut" (sid "1")'\r\n""",
                b"MSG open 2 0\r\n\r\n",
                b"""-ERR 'Permissions Violation for Publish to "no"'\r\n""",
            )


def test_clients_end_with_their_account_at_the_time_that_was_pushed_last(kind: str, tmp_path: Path) -> None:
    with serve(kind, tmp_path, full(tmp_path / "accounts")) as server, Admin(server) as admin:
        with enter(server.port, CHAIN.a) as prolonged, enter(server.port, CHAIN.b) as ending:
            assert prolonged.settle() == ending.settle() == b""
            soon = int(time.time()) + 2
            for key in (CHAIN.a, CHAIN.b):
                assert admin.ask("$SYS.REQ.CLAIMS.UPDATE", _ending(key, soon)) == updated(key)
            with enter(server.port, CHAIN.a, LATER) as later:  # knows of no other time than `soon`
                assert later.settle() == b""
                assert admin.ask("$SYS.REQ.CLAIMS.UPDATE", account(CHAIN.a, NEWER + 1)) == updated(CHAIN.a)
                assert ending.receive_end().endswith(b"-ERR 'Account Authentication Expired'\r\n")
                assert prolonged.settle() == later.settle() == b""


def test_a_leaf_node_whose_user_a_push_revokes_is_sent_away(kind: str, tmp_path: Path) -> None:
    text = full(tmp_path / "accounts") + 'leafnodes { listen: "127.0.0.1:-1", compression: off }\n'
    with leafs.serve(REAL if kind == "nats-server" else OURS, tmp_path, text) as hub, Admin(hub) as admin:
        with RawLink(hub.leaf_port) as leaf:
            nonce = read_info(leaf.greeting)["nonce"]
            jwt = {"jwt": CHAIN.user(USER, CHAIN.a), "sig": USER.sign(nonce)}
            leaf.send(b"CONNECT %s\r\n" % json.dumps({"version": "2.10.0", "name": "me", **jwt}).encode())
            leaf.receive_until(b"$LDS.")
            push = account(CHAIN.a, revocations={USER.public: int(time.time()) + 1})
            assert admin.ask("$SYS.REQ.CLAIMS.UPDATE", push) == updated(CHAIN.a)
            assert leaf.receive_end().endswith(b"-ERR 'User Authentication Revoked'\r\n")


def _ending(key: Key, expires: int) -> str:
    nats = json.loads(_decoded(CHAIN.account(key).split(".")[1]))["nats"]
    return token(CHAIN.operator, key.public, nats, iat=NEWER, exp=expires)


def test_a_push_may_give_an_account_streams_and_more_of_them(kind: str, tmp_path: Path) -> None:
    directory = tmp_path / "accounts"
    store = f'jetstream: {{ store_dir: "{tmp_path / "js"}" }}\n'

    def most(streams: int) -> dict[str, int]:
        return {"disk_storage": 1 << 20, "mem_storage": 0, "streams": streams, "consumer": -1}

    with serve(kind, tmp_path, full(directory) + store) as server, Admin(server) as admin:
        with enter(server.port, CHAIN.a) as link:
            for streams in (3, 7):
                push = account(CHAIN.a, NEWER + streams, limits=most(streams))
                assert admin.ask("$SYS.REQ.CLAIMS.UPDATE", push) == updated(CHAIN.a)
                assert _stream_limit(link, streams) == streams


def _stream_limit(link: RawLink, wanted: int) -> int:
    """`max_streams` of $JS.API.INFO, which an account has a moment after the push. An answer may come behind the PONG."""
    found, deadline = -1, time.monotonic() + 30
    link.send(b"SUB info 9\r\n")
    while time.monotonic() < deadline:
        link.send(b"PUB $JS.API.INFO info 0\r\n\r\n")
        output = link.settle()
        for line in output.split(b"\r\n"):
            if b"max_streams" in line:
                found = json.loads(line)["limits"]["max_streams"]
        if found == wanted:
            break
    link.send(b"UNSUB 9\r\n")
    link.settle()
    return found


def test_the_streams_of_a_deleted_account_stay_and_are_there_again_when_it_comes_back(
    kind: str, tmp_path: Path
) -> None:
    text = full(tmp_path / "accounts") + f'jetstream: {{ store_dir: "{tmp_path / "js"}" }}\n'
    limits = {"disk_storage": 1 << 20, "mem_storage": 0, "streams": 3, "consumer": -1}

    def push(admin: Admin, issued: int) -> None:
        assert admin.ask("$SYS.REQ.CLAIMS.UPDATE", account(CHAIN.a, issued, limits=limits)) == updated(CHAIN.a)

    with serve(kind, tmp_path, text) as server, Admin(server) as admin:
        push(admin, NEWER + 1)
        with enter(server.port, CHAIN.a) as link:
            assert _stream_limit(link, 3) == 3
            link.send(b'SUB made 1\r\nPUB $JS.API.STREAM.CREATE.S made 29\r\n{"name":"S","subjects":["s"]}\r\n')
            while b'"S"' not in link.receive_line():
                pass
            admin.ask("$SYS.REQ.CLAIMS.DELETE", deletion(CHAIN.operator, CHAIN.a.public))
            link.receive_end()
        push(admin, NEWER + 2)
        with enter(server.port, CHAIN.a) as link:
            assert _stream_limit(link, 3) == 3
            assert _has_stream(link)
        admin.ask("$SYS.REQ.CLAIMS.DELETE", deletion(CHAIN.operator, CHAIN.a.public))
    with serve(kind, tmp_path, text) as server, Admin(server) as admin:
        push(admin, NEWER + 3)
        with enter(server.port, CHAIN.a) as link:
            assert _stream_limit(link, 3) == 3
            assert _has_stream(link)


def _has_stream(link: RawLink) -> bool:
    link.send(b"SUB names 1\r\nPUB $JS.API.STREAM.NAMES names 0\r\n\r\n")
    while b"streams" not in (line := link.receive_line()):
        pass
    return b'["S"]' in line


@contextmanager
def accounts_by_url(tokens: dict[str, str], certificates: Certificates | None = None) -> Iterator[str]:
    """A web server with these JWTs; by https where there are certificates, and then for clients that show one."""

    class Pages(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = tokens.get(self.path.rpartition("/")[2])
            self.send_response(200 if found or self.path == "/accounts/" else 404)
            self.end_headers()
            self.wfile.write((found or "").encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        if certificates is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates.server_cert, certificates.server_key)
            context.load_verify_locations(certificates.ca)
            context.verify_mode = ssl.CERT_REQUIRED
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http{'s' if certificates is not None else ''}://127.0.0.1:{server.server_port}/accounts/"
        finally:
            server.shutdown()
            thread.join(30)


def test_accounts_may_come_from_a_url(kind: str, tmp_path: Path) -> None:
    with (
        accounts_by_url({**CHAIN.accounts, NEW.public: account(NEW, signed_by=STRANGER)}) as url,
        serve(kind, tmp_path, config(f"URL({url})", preload=False)) as server,
        Admin(server),
    ):
        assert try_to_enter(server.port, CHAIN.a) == still_open()
        assert try_to_enter(server.port, CHAIN.a) == still_open()
        assert try_to_enter(server.port, NEW) == REFUSED
        assert try_to_enter(server.port, Key(NkeyKind.ACCOUNT, 98)) == REFUSED


def test_a_url_by_https_is_read_as_resolver_tls_says(kind: str, tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "certificates")
    own = f'cert_file: "{made.client_cert}", key_file: "{made.client_key}"'
    with accounts_by_url(dict(CHAIN.accounts), made) as url:
        config_text = config(f"URL({url})", preload=False)
        right = f'resolver_tls {{ ca_file: "{made.ca}", {own} }}\n'
        with serve(kind, tmp_path / "right", config_text + right) as server:
            assert try_to_enter(server.port, CHAIN.a) == still_open()


def test_resolver_tls_without_a_use_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.conf"
    path.write_text(config("MEMORY") + "resolver_tls { insecure: true }\n")
    with pytest.raises(ConfigError, match="URL"):
        load(str(path), lambda name: Path(name).read_text(), {}).finish()
