"""What a full directory takes from those of other servers: kept, or refused with a reason."""

import asyncio
import logging
from pathlib import Path

import pytest
from support.operator_chain import Chain

from headwater.authorization.operator import Trust
from headwater.exchange.router import Router
from headwater.options.access import OperatorOptions, ResolverOptions
from headwater.server.resolver.claims import Claims
from headwater.server.resolver.resolver import Resolver
from headwater.server.system.documents import Speaker

CHAIN = Chain()


def no_speaker() -> Speaker:
    raise AssertionError("no answer was asked for")


def test_an_account_of_another_server_that_cannot_be_kept_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        trust = Trust(OperatorOptions(operators=(CHAIN.operator_jwt,)))
        resolver = Resolver(ResolverOptions(kind="full", directory=str(tmp_path), limit=1), trust, lambda _: None)
        router = Router(asyncio.get_running_loop().call_soon, 1)
        claims = Claims(resolver, trust, router, no_speaker)
        claims.start()
        [packs] = [one.subject for one in router.sublist.all() if one.subject.startswith(b"_INBOX.")]
        first, second = CHAIN.a.public, CHAIN.b.public
        with caplog.at_level(logging.WARNING, "headwater"):
            for key in (first, second):
                router.publish(packs, b"", b"", f"{key}|{CHAIN.accounts[key]}".encode())
        claims.stop()
        assert resolver.directory is not None
        assert list(resolver.directory.tokens) == [first]
        assert [record.getMessage().split()[:2] for record in caplog.records] == [
            ["account_jwt_not_kept", f"account={second}"]
        ]

    asyncio.run(main())
