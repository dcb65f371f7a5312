"""Addresses in URLs are parsed as by the standard library, if that can parse them."""

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.net.address import UrlAddress, bracketed, reachable, url_address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("nats-route://127.0.0.1:6222", UrlAddress("127.0.0.1", 6222, "", None)),
        ("nats://Host.Example:6222/path?query#part", UrlAddress("host.example", 6222, "", None)),
        ("nats-route://[::1]:6222/", UrlAddress("::1", 6222, "", None)),
        ("nats-route://u%40x:p%3Aw@h:1", UrlAddress("h", 1, "u@x", "p:w")),
        ("nats-route://u@h", UrlAddress("h", None, "u", None)),
        ("nats-route://u:@h", UrlAddress("h", None, "u", "")),
        ("nats-route://a@b:c@h:1", UrlAddress("h", 1, "a@b", "c")),
        ("h:1", UrlAddress("h", 1, "", None)),
        ("", UrlAddress("", None, "", None)),
    ],
)
def test_an_address_is_read(url: str, address: UrlAddress) -> None:
    assert url_address(url) == address


@pytest.mark.parametrize("place", ["h:65536", "h:x", "h:-1", "h:١", "[::1", "[::1]x", "::1", "h]:1", "u:secret@[::1"])
def test_an_invalid_address_is_refused_and_not_quoted(place: str) -> None:
    with pytest.raises(ValueError, match=r"^(a port|an )") as caught:
        url_address(f"nats-route://{place}")
    assert "secret" not in str(caught.value)


def test_a_listener_on_every_interface_is_reached_on_this_machine() -> None:
    assert [reachable(host) for host in ("", "0.0.0.0", "::", "fe80::1", "h")] == [
        "127.0.0.1", "127.0.0.1", "[::1]", "[fe80::1]", "h",
    ]  # fmt: skip


WORDS = st.text(st.sampled_from("aB1.-%@:/?#[]é"), max_size=8)


@given(WORDS, WORDS, WORDS)
def test_the_standard_library_agrees_where_both_read_it(user: str, password: str, place: str) -> None:
    url = f"nats-route://{user}:{password}@{place}"
    try:
        ours = url_address(url)
        parts = urlsplit(url)
        theirs = UrlAddress(
            parts.hostname or "",
            parts.port,
            unquote(parts.username or ""),
            None if parts.password is None else unquote(parts.password),
        )
    except ValueError:
        return
    assert ours == theirs


def test_only_an_ipv6_address_is_put_in_brackets_and_once() -> None:
    assert [bracketed(host) for host in ("h", "::1", "[::1]")] == ["h", "[::1]", "[::1]"]
