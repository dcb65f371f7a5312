import ssl

import pytest

from headwater.errors import ConfigError
from headwater.iggy_client.options import Options, options_of


def test_each_scheme_has_its_transport_and_port() -> None:
    found = {url: options_of(f"{url}://h") for url in ("iggy", "iggy+tcp", "iggy+quic", "iggy+ws")}
    assert [(one.transport, one.port) for one in found.values()] == [
        ("tcp", 8090),
        ("tcp", 8090),
        ("quic", 8080),
        ("ws", 8092),
    ]
    assert options_of("iggy://h:1").port == 1


def test_credentials_are_user_and_password_or_a_token() -> None:
    assert options_of("iggy://u%40:p%3A@h").username == "u@"
    assert options_of("iggy://u%40:p%3A@h").password == "p:"
    assert (options_of("iggy://h").username, options_of("iggy://h").password) == ("iggy", "iggy")
    assert (options_of("iggy://secret@h").token, options_of("iggy://secret@h").username) == ("secret", "")
    assert "p:" not in repr(options_of("iggy://u:p%3A@h")) and "secret" not in repr(options_of("iggy://secret@h"))


def test_a_token_with_slashes_is_taken_whole_and_no_error_shows_it() -> None:
    """Those of Apache's server have them, one in two."""
    found = options_of("iggy+http://ab/c+d/e=@h:1?tls=true")
    assert (found.token, found.host, found.port, found.tls) == ("ab/c+d/e=", "h", 1, True)
    assert options_of("iggy://u:p/q@h").password == "p/q"
    with pytest.raises(ConfigError) as refused:
        options_of("iggy://ab/cd@h:x")
    assert "ab" not in str(refused.value) and "...@h:x" in str(refused.value)


def test_the_query_has_the_words_of_apaches_connection_strings() -> None:
    query = (
        "tls=true&tls_domain=d&reconnection_retries=3&reconnection_interval=500ms&heartbeat_interval=2s&nodelay=true"
    )
    found = options_of(f"iggy://h?{query}")
    assert (found.tls, found.server_name, found.reconnect_attempts) == (True, "d", 3)
    assert (found.reconnect_wait, found.heartbeat) == (0.5, 2.0)
    assert options_of("iggy://h?reconnection_retries=unlimited").reconnect_attempts is None
    assert options_of("iggy://h?reconnection_retries=3", reconnect_attempts=7).reconnect_attempts == 7


@pytest.mark.parametrize(
    "url",
    [
        "nats://h",
        "iggy://",
        "iggy://h:99999",
        "iggy://h?tls=perhaps",
        "iggy://h?nodelay=false",
        "iggy://h?what=1",
        "iggy://h?reconnection_interval=soon",
        "iggy://h?reconnection_retries=-1",
    ],
)
def test_what_is_no_url_or_no_option_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        options_of(url)


def test_a_server_is_checked_unless_it_was_said_otherwise() -> None:
    assert Options().context() is None
    checked, unchecked = Options(tls=True).context(), Options(tls=True, tls_verify=False).context()
    assert checked is not None and checked.verify_mode is ssl.CERT_REQUIRED and checked.check_hostname
    assert unchecked is not None and unchecked.verify_mode is ssl.CERT_NONE
    own = ssl.create_default_context()
    assert Options(tls=own).context() is own
    with pytest.raises(ConfigError):
        Options(tls=True, tls_ca="/none").context()
