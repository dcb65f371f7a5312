"""Tokens that the jwt library of `nsc` made (vectors/jwt/main.go), at nats-server and at ours with the same file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.configured_servers import KINDS, ServerShelf, shelf
from support.raw_wire import RawLink, connect_op, read_info, still_open

from headwater.wire.nkeys import KeyPair, creds_in

__all__ = ["shelf"]

pytestmark = pytest.mark.interop

CHAIN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "vectors" / "jwt" / "chain.json").read_text())
PRELOAD = "\n".join(f"  {key}: {jwt}" for key, jwt in CHAIN["accounts"].items())


@pytest.fixture(params=KINDS)
def port(request: pytest.FixtureRequest, shelf: ServerShelf, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    operator = tmp_path_factory.getbasetemp() / "operator.jwt"
    operator.write_text(CHAIN["decorated"])
    store = tmp_path_factory.getbasetemp() / f"nsc-{request.param}"
    config = f"operator: {operator}\nresolver: MEMORY\nresolver_preload: {{\n{PRELOAD}\n}}\n"
    config += f"jetstream: {{ store_dir: {store} }}"
    yield shelf.get(str(request.param), config).port


def enter(link: RawLink, creds: str) -> None:
    jwt, seed = creds_in(creds)
    nonce = read_info(link.greeting)["nonce"]
    link.send(connect_op(jwt=jwt, sig=KeyPair(seed).sign(nonce), headers=True))


def violation(kind: str, subject: str) -> bytes:
    return f"-ERR 'Permissions Violation for {kind} \"{subject}\"'\r\n".encode()


def test_a_user_with_a_creds_file_has_its_permissions(port: int) -> None:
    with RawLink(port) as link:
        enter(link, CHAIN["creds"])
        assert link.answer(b"PUB orders.1 1\r\nx\r\nPUB other 1\r\nx\r\n") == still_open(
            violation("Publish to", "other")
        )


def test_a_user_of_a_scoped_key_has_those_of_its_role(port: int) -> None:
    with RawLink(port) as link:
        enter(link, CHAIN["scoped"])
        assert link.answer(b"SUB orders.bob.> 1\r\n") == still_open()
        assert link.answer(b"SUB orders.ann.> 2\r\n") == still_open(violation("Subscription to", "orders.ann.>"))
        assert link.answer(b"PUB orders.bob.x 1\r\nx\r\n") == still_open(violation("Publish to", "orders.bob.x"))


def test_a_bearer_needs_no_signature(port: int) -> None:
    with RawLink(port) as link:
        assert link.answer(connect_op(jwt=CHAIN["bearer"])) == still_open()


def test_storage_comes_with_the_account(port: int) -> None:
    with RawLink(port) as link:
        link.send(connect_op(jwt=CHAIN["bearer"]))
        link.send(b"SUB info 2\r\nPUB $JS.API.INFO info 0\r\n\r\n")
        output = link.receive_until(b"}\r\n")
        document = json.loads(output[output.index(b"{") :])
        assert (document["limits"]["max_storage"], document["limits"]["max_streams"]) == (1 << 20, 5)
