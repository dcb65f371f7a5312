"""Connection options anywhere on the line; durations and sizes as the `nats` tool takes them."""

from pathlib import Path

import pytest

from headwater.cli.nats_session import headers_from, seconds, size, spell_bytes, take_session
from headwater.cli.payloads import plain
from headwater.client.contexts import write_context
from headwater.errors import ConfigError


def test_connection_options_are_taken_from_anywhere() -> None:
    session, rest = take_session(
        ["ls", "-s", "nats://h:1", "--user=u", "--password", "p", "-n", "--json", "--timeout=2s"]
    )
    assert rest == ["ls", "-n"]
    assert (session.options.servers, session.options.user, session.options.password) == (("nats://h:1",), "u", "p")
    assert session.json
    assert session.timeout == 2.0
    assert take_session(["-s", "h", "--", "--json"])[1] == ["--", "--json"]
    with pytest.raises(ConfigError, match="needs a value"):
        take_session(["--server"])


def test_jetstream_is_asked_under_the_prefix_of_the_line_or_of_the_context(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NATS_CONTEXT", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name, document in (("d", {"jetstream_domain": "hub"}), ("p", {"jetstream_api_prefix": "there"})):
        write_context(name, document, {"XDG_CONFIG_HOME": str(tmp_path)})

    def prefix(*words: str) -> str:
        return take_session([*words])[0].api_prefix

    assert prefix() == "$JS.API"
    assert prefix("--js-domain", "edge", "--context", "p") == "$JS.edge.API"
    assert (prefix("--context", "d"), prefix("--context", "p")) == ("$JS.hub.API", "there")


@pytest.mark.parametrize(
    ("text", "expected"), [("5", 5), ("1.5", 1.5), ("100ms", 0.1), ("1m30s", 90), ("2h", 7200), ("1d", 86400)]
)
def test_durations(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize(
    ("text", "count"), [("-1", -1), ("10", 10), ("64K", 65536), ("1MB", 1 << 20), ("2GiB", 2 << 30)]
)
def test_sizes(text: str, count: int) -> None:
    assert size(text) == count


@pytest.mark.parametrize("text", ["", "x", "5 s", "1x", "-5s"])
def test_what_is_no_duration_or_size_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        seconds(text)
    with pytest.raises(ConfigError):
        size(text or "y")


def test_small_things() -> None:
    assert headers_from(["A:b:c"]) == [("A", "b:c")]
    assert plain(b"\xff\xfe") == "<2 bytes>"
    assert [spell_bytes(count) for count in (0, 1023, 1536, 1 << 40)] == ["0 B", "1023 B", "1.5 KiB", "1.0 TiB"]
