"""Documents for those who listen, and none without a listener; what they say is held against nats-server elsewhere."""

import json
from typing import NamedTuple

from headwater.exchange.router import Router
from headwater.jetstream_advisories.advisories import Advisories


class Place(NamedTuple):
    name: str = ""
    account: str = "A"
    system: Router | None = None


def received(router: Router) -> list[tuple[bytes, dict[str, object]]]:
    published: list[tuple[bytes, dict[str, object]]] = []
    router.subscribe_internal(
        b"$JS.EVENT.>", lambda subject, reply, block, body: published.append((subject, json.loads(body)))
    )
    return published


def test_a_domain_is_named_and_what_nobody_hears_is_not_sent() -> None:
    router = Router(lambda callback: callback(), 1)
    advisories = Advisories(router, lambda: 0, Place("hub"))
    advisories.given_up("S", "c", 7, 2)
    assert not advisories.is_wanted("API")
    published = received(router)
    assert advisories.is_wanted("API")
    advisories.given_up("S", "c", 7, 2)
    ((subject, document),) = published
    assert subject == b"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.S.c"
    assert (document["domain"], document["stream_seq"], document["deliveries"]) == ("hub", 7, 2)


def test_only_a_batch_that_was_given_up_is_told_to_the_system_account_too() -> None:
    router, system = Router(lambda callback: callback(), 1), Router(lambda callback: callback(), 1)
    advisories = Advisories(router, lambda: 0, Place(system=system))
    published, there = received(router), received(system)
    advisories.stream("S", "create")
    advisories.batch_abandoned("S", b"b", "timeout")
    assert [subject for subject, _ in there] == [b"$JS.EVENT.ADVISORY.STREAM.BATCH_ABANDONED.S"]
    assert len(published) == 2
    assert (there[0][1]["account"], "account" in published[1][1]) == ("A", False)
