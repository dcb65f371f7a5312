"""The server and the user of a connection: as the client has it, and no secret shows."""

from pathlib import Path

import msgspec
import pytest

from headwater.client.contexts import write_context
from headwater.errors import ConfigError
from headwater.spark.option_values import lowered
from headwater.spark.server_options import NAMES, ServerOptions, parse_server_options


def parsed(**options: str) -> ServerOptions:
    return parse_server_options(lowered(options, NAMES))


def test_every_option_reaches_the_client(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("sesame\n")
    seed = "SU" + "A" * 56
    (tmp_path / "seed").write_text(f"# of a user\n{seed}\n")
    given = {
        "servers": "nats://a:1, b:2",
        "user": "u",
        "password": f"file:{secret}",
        "token": f"file:{secret}",
        "nkey": f"file:{tmp_path / 'seed'}",
        "creds": "/c",
        "tls": "true",
        "tlsCa": "/ca",
        "tlsCert": "/cert",
        "tlsKey": "/key",
        "tlsFirst": "true",
        "tlsHostname": "h",
    }
    assert set(given) == set(NAMES) - {"context", "jsApi"}
    options = parsed(**given).client_options("name", 3.0)
    assert options.servers == ("nats://a:1", "b:2")
    assert (options.name, options.connect_timeout) == ("name", 3.0)
    assert (options.user, options.password, options.token, options.nkey_seed) == ("u", "sesame", "sesame", seed)
    assert (options.creds, options.tls, options.tls_first, options.tls_hostname) == ("/c", True, True, "h")
    assert (options.tls_ca, options.tls_cert, options.tls_key) == ("/ca", "/cert", "/key")


def test_without_options_the_server_is_the_local_one_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NATS_URL", "nats://elsewhere:1")
    assert parsed().client_options("n", 1.0).servers == ("nats://127.0.0.1:4222",)


def test_a_context_brings_servers_and_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "nats" / "context").mkdir(parents=True)
    context = {"url": "nats://a:1", "user": "u", "password": "p"}
    (tmp_path / "nats" / "context" / "shop.json").write_bytes(msgspec.json.encode(context))
    options = parsed(context="shop").client_options("n", 1.0)
    assert (options.servers, options.user, options.password) == (("nats://a:1",), "u", "p")


@pytest.mark.parametrize("name", ["password", "token", "nkey"])
@pytest.mark.parametrize("value", ["hunter2", "env:", "file", "plain:hunter2"])
def test_a_secret_itself_is_refused_and_not_quoted(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parsed(**{name: value})
    assert "hunter2" not in f"{refused.value} {refused.value.value} {refused.value.__cause__}"


@pytest.mark.parametrize("url", ["nats://me:hunter2@h", "nats://hunter2@h", "ws://h", "http://h", ","])
def test_a_url_is_a_place_and_nothing_else(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parsed(servers=url)
    assert "hunter2" not in f"{refused.value} {refused.value.value} {refused.value.__cause__}".replace(url, "")


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(ConfigError, match="tlsKey"):
        parsed(tlsCert="/c")


def test_references_are_resolved_where_they_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("sesame\n")
    options = parsed(user="me", password="env:HW_TEST_PASSWORD", token=f"file:{secret}")
    with pytest.raises(ConfigError, match="HW_TEST_PASSWORD"):
        options.client_options("n", 1.0)
    monkeypatch.setenv("HW_TEST_PASSWORD", "hunter2")
    found = options.client_options("n", 1.0)
    assert (found.user, found.password, found.token) == ("me", "hunter2", "sesame")
    assert "hunter2" not in f"{options!r} {found!r}"
    secret.unlink()
    with pytest.raises(ConfigError, match="cannot read"):
        options.client_options("n", 1.0)


@pytest.mark.parametrize("seed", ["hunter2", "SUhunter2", ""])
def test_what_is_no_seed_is_refused_and_not_quoted(seed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEED", seed)
    with pytest.raises(ConfigError, match="option nkey: what 'env:SEED' holds is no nkey seed") as refused:
        parsed(nkey="env:SEED").client_options("n", 1.0)
    assert "hunter2" not in f"{refused.value} {refused.value.value} {refused.value.__cause__}"


def test_the_prefix_of_the_api_is_a_literal_subject() -> None:
    assert parsed().api_prefix() == "$JS.API"
    assert parsed(jsApi="$JS.hub.API").api_prefix() == "$JS.hub.API"
    for odd in ("$JS.*.API", "a..b", "a b", ">"):
        with pytest.raises(ConfigError, match="no prefix of subjects"):
            parsed(jsApi=odd)


@pytest.mark.parametrize(
    ("context", "api"),
    [
        ({"jetstream_domain": "hub"}, "$JS.hub.API"),
        ({"jetstream_domain": "hub", "jetstream_api_prefix": "there"}, "there"),
        ({}, "$JS.API"),
    ],
)
def test_a_context_brings_its_domain(
    context: dict[str, str], api: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    write_context("c", context, {"XDG_CONFIG_HOME": str(tmp_path)})
    assert parsed(context="c").api_prefix() == api
    assert parsed(context="c", jsApi="mine").api_prefix() == "mine"
