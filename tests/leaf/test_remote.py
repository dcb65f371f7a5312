"""The address and the time of each dial of a hub."""

import pytest

from headwater.errors import ConfigError
from headwater.leaf.remote import LONGEST, LONGEST_REFUSED, MOST_DISCOVERED, Remote, address_of
from headwater.options.leaf import RemoteOptions


def remote(*urls: str, jitter: float = 0.0, **options: bool) -> Remote:
    return Remote(RemoteOptions(urls=urls, no_randomize=True, **options), 1.0, lambda: jitter)  # type: ignore[arg-type]


def test_a_url_gives_address_and_transport() -> None:
    address = address_of("wss://u:p%40@Hub.example.com/deep/path?x=1")
    assert (address.scheme, address.host, address.port) == ("wss", "hub.example.com", 7422)
    assert (address.user, address.password, address.path) == ("u", "p@", "/deep/path")
    assert address.is_websocket
    assert address.is_secure
    assert address.shown == "wss://hub.example.com:7422"
    assert address_of("[::1]:99").shown == "nats-leaf://[::1]:99"
    assert (address_of("ws://a/base").path, address_of("ws://a").path) == ("/base", "")


@pytest.mark.parametrize("url", ["http://a", "tls://", "tls://a:0", "tls://u:secret@[a"])
def test_a_url_that_leads_nowhere_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        address_of(url)
    assert "secret" not in str(refused.value)


def test_several_urls_are_tried_in_turn_and_the_one_that_worked_first() -> None:
    hubs = remote("a:1", "b:2")
    assert hubs.next().host == "a"
    hubs.failed("no answer")
    assert hubs.next().host == "b"
    hubs.joined(hubs.next())
    hubs.failed("cut")
    assert hubs.next().host in ("a", "b")


def test_a_lost_hub_is_dialled_again_after_the_interval_and_ever_later_while_it_does_not_answer() -> None:
    hub = remote("a:1")
    hub.joined(hub.next())
    hub.failed("cut")
    waits = [hub.wait()]
    for _ in range(8):
        hub.failed("no answer")
        waits.append(hub.wait())
    assert waits[:3] == [1.0, 1.0, 1.5]
    assert waits[-1] == LONGEST
    hub.joined(hub.next())
    hub.failed("cut")
    assert hub.wait() == 1.0


def test_a_hub_that_refuses_us_is_dialled_less_often() -> None:
    hub = remote("a:1")
    for _ in range(20):
        hub.failed("Authorization Violation", refused=True)
    assert hub.wait() == LONGEST_REFUSED


def test_jitter_keeps_spokes_apart() -> None:
    early, late = remote("a:1"), remote("a:1", jitter=0.9)
    for hub in (early, late):
        hub.failed("no answer")
    assert late.wait() - early.wait() == pytest.approx(0.9)


def test_a_refusal_with_a_wait_is_honoured() -> None:
    hub = remote("a:1")
    hub.joined(hub.next())
    hub.failed("Loop detected", stay_away=30.0)
    assert hub.wait() == 30.0
    assert hub.reason == "Loop detected"


def test_addresses_that_the_hub_announces_come_behind_those_of_the_configuration() -> None:
    hub = remote("tls://u:p@a:1")
    hub.announced(("a:1", "10.0.0.7:2", "nonsense:x", "b"), hub.next())
    assert [(each.host, each.port) for each in hub.addresses] == [("a", 1), ("10.0.0.7", 2), ("b", 7422)]
    assert {each.user for each in hub.addresses} == {"u"}
    assert hub.tls_name(hub.addresses[1]) == "a"
    assert hub.tls_name(hub.addresses[2]) == "b"
    hub.announced(("c:3",), hub.next())
    assert [each.host for each in hub.addresses] == ["a", "c"]
    hub.announced(tuple(f"h{number}:1" for number in range(1000)), hub.next())
    assert len(hub.addresses) == 1 + MOST_DISCOVERED


def test_announced_addresses_are_ignored_if_configured_so() -> None:
    hub = remote("a:1", ignore_discovered_servers=True)
    hub.announced(("b:2",), hub.next())
    assert len(hub.addresses) == 1


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(remote("nats-leaf://u:secret@a:1"))
