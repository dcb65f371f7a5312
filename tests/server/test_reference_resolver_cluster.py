"""Accounts cross between the resolvers of two servers of a cluster, ours and nats-server's, in both directions."""

import time
from pathlib import Path

import pytest
from support.configured_servers import serve
from support.operator_chain import Chain, Key
from support.raw_wire import RawLink, connect_op, read_info, still_open

from headwater.model.nkey import NkeyKind
from headwater.testing.ports import free_port

pytestmark = pytest.mark.interop

CHAIN = Chain()
USER, ADMIN = Key(NkeyKind.USER, 70), Key(NkeyKind.USER, 71)
NEW = Key(NkeyKind.ACCOUNT, 73)
SECONDS = 60.0
PAIRS = [("headwater", "headwater"), ("headwater", "nats-server"), ("nats-server", "headwater")]


def config(resolver: str, port: int, other: int) -> str:
    """Of one of two servers. Both know the accounts of the chain."""
    accounts = "\n".join(f"  {key}: {jwt}" for key, jwt in CHAIN.accounts.items())
    return (
        f"operator: {CHAIN.operator_jwt}\nsystem_account: {CHAIN.system.public}\n"
        f"resolver_preload: {{\n{accounts}\n}}\nresolver: {resolver}\n"
        f'cluster {{ name: c, listen: "127.0.0.1:{port}", routes: ["nats://127.0.0.1:{other}"] }}\n'
    )


def enter(port: int, account: Key, user: Key) -> RawLink:
    link = RawLink(port)
    nonce = read_info(link.greeting)["nonce"]
    link.send(connect_op(jwt=CHAIN.user(user, account), sig=user.sign(nonce)))
    return link


def push(port: int) -> None:
    """A new account, at one server."""
    with enter(port, CHAIN.system, ADMIN) as link:
        token = CHAIN.account(NEW).encode()
        link.send(b"SUB answers 1\r\nPUB $SYS.REQ.CLAIMS.UPDATE answers %d\r\n%b\r\n" % (len(token), token))
        assert b'"code":200' in link.receive_until(b"}\r\n")


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_full_directory_fetches_what_another_one_has(first: str, second: str, tmp_path: Path) -> None:
    ports = free_port(), free_port()
    places = [tmp_path / name for name in ("first", "second")]
    texts = [
        config(f'{{ type: full, dir: "{place / "jwt"}", interval: "1s" }}', port, other)
        for place, port, other in zip(places, ports, reversed(ports), strict=True)
    ]
    for place in places:
        place.mkdir()
    with serve(first, places[0], texts[0]) as known:
        push(known.port)
        with serve(second, places[1], texts[1]) as joined:
            deadline = time.monotonic() + SECONDS
            wanted = places[1] / "jwt" / f"{NEW.public}.jwt"
            while not wanted.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            assert wanted.read_text().strip() == CHAIN.account(NEW)
            with enter(joined.port, NEW, USER) as link:
                assert link.answer(b"PING\r\n") == still_open(b"PONG\r\n")


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_cache_asks_the_other_server_for_an_account_that_it_needs(first: str, second: str, tmp_path: Path) -> None:
    ports = free_port(), free_port()
    places = [tmp_path / name for name in ("first", "second")]
    kinds = [f'{{ type: full, dir: "{places[0] / "jwt"}" }}', f'{{ type: cache, dir: "{places[1] / "jwt"}" }}']
    for place in places:
        place.mkdir()
    with (
        serve(first, places[0], config(kinds[0], *ports)) as known,
        serve(second, places[1], config(kinds[1], *reversed(ports))) as requester,
    ):
        push(known.port)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:  # until the two have found each other
            with enter(requester.port, NEW, USER) as link:
                if link.answer(b"PING\r\n") == still_open(b"PONG\r\n"):
                    break
            time.sleep(0.05)
        assert (places[1] / "jwt" / f"{NEW.public}.jwt").read_text().strip() == CHAIN.account(NEW)
