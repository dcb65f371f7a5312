"""Server URLs: what is read, what is refused, and that no secret is ever quoted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.client_connection.server_url import ServerAddress, parse_server_url, parse_server_urls
from headwater.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("nats://127.0.0.1:4333", ServerAddress("127.0.0.1", 4333)),
        ("127.0.0.1:4333", ServerAddress("127.0.0.1", 4333)),
        (" localhost ", ServerAddress("localhost", 4222)),
        ("nats://[::1]:4333/", ServerAddress("::1", 4333)),
        ("nats://u:p@h", ServerAddress("h", 4222, "u", "p")),
        ("nats://u:@h", ServerAddress("h", 4222, "u", "")),
        ("nats://t0ken@h:1", ServerAddress("h", 1, token="t0ken")),
        ("nats://u%40x:p%2Fq@h", ServerAddress("h", 4222, "u@x", "p/q")),
        ("tls://h", ServerAddress("h", 4222, scheme="tls")),
        ("ws://h", ServerAddress("h", 80, scheme="ws")),
        ("wss://u:p@h/nats/", ServerAddress("h", 443, "u", "p", scheme="wss", path="/nats")),
    ],
)
def test_what_a_url_says(url: str, address: ServerAddress) -> None:
    assert parse_server_url(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nats://",
        "http://h",
        "nats://h:99999",
        "tls://h/p",
        "ws://h/p?q",
        "ws:///p",
        "nats://h:x",
        "nats://h/p",
        "nats://[::1",
    ],
)
def test_what_is_no_server_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        parse_server_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "nats://user:s3cret@h:x",
        "nats://user:s3cret@",
        "nats://user:s3c/s3cret@h",
        "nats://user:s3cret/@h:1",
        "nats://user:#s3cret@h",
        "nats://user:s3cret?@h",
        "nats://user:s3cret@[::1",
        "tls://user:s3cret@h/p",
        "ws://user:s3cret@h/#p",
        "user:s3cret@h/p",
    ],
)
def test_a_secret_is_never_quoted(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_server_url(url)
    assert "s3c" not in f"{caught.value} {caught.value.value} {caught.value.__cause__}"
    assert "s3c" not in repr(ServerAddress("h", 1, "u", "s3cret", "s3cret"))


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_a_configuration_error(text: str) -> None:
    try:
        parse_server_url(text)
    except ConfigError:
        pass


def test_several_urls_come_as_a_list_or_with_commas() -> None:
    two = [ServerAddress("a", 1), ServerAddress("b", 4222)]
    assert parse_server_urls("nats://a:1, b") == two
    assert parse_server_urls(["nats://a:1", "b"]) == two
    with pytest.raises(ConfigError, match="no server"):
        parse_server_urls(" , ")
    with pytest.raises(ConfigError, match="no server"):
        parse_server_urls([])


def test_an_address_is_shown_without_its_credentials() -> None:
    assert parse_server_url("wss://u:p@[::1]:8080/nats").url == "wss://[::1]:8080/nats"
    assert parse_server_url("t0ken@h").url == "nats://h:4222"
