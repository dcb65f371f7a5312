"""NATS contexts and the environment: which of them says what, and who wins."""

import json
from pathlib import Path
from typing import cast

import pytest

from headwater.client.contexts import chosen_context, find_options, read_context
from headwater.client_connection.options import DEFAULT_URL, ConnectArguments
from headwater.errors import ConfigError


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment whose configuration directory holds the contexts `prod` and `dev`; `prod` is chosen."""
    contexts = tmp_path / "nats" / "context"
    contexts.mkdir(parents=True)
    prod = {
        "description": "the real one",
        "url": "nats://prod-1:4222,nats://prod-2:4222",
        "user": "alice",
        "password": "s3cret",
        "creds": "~/prod.creds",
        "inbox_prefix": "_INBOX.alice",
        "tls_first": True,
        "color_scheme": "cyan",
    }
    (contexts / "prod.json").write_text(json.dumps(prod))
    (contexts / "dev.json").write_text('{"url":"nats://dev:4222"}')
    (contexts / "broken.json").write_text('{"password":"s3cret"')
    (tmp_path / "nats" / "context.txt").write_text("prod\n")
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def test_a_context_that_is_named_fills_everything_it_says(env: dict[str, str]) -> None:
    options = find_options(None, {"context": "prod"}, env)
    assert options.servers == ("nats://prod-1:4222", "nats://prod-2:4222")
    assert (options.user, options.password, options.inbox_prefix) == ("alice", "s3cret", "_INBOX.alice")
    assert options.creds == str(Path("~/prod.creds").expanduser())
    assert options.tls_first


def test_arguments_win_over_the_context(env: dict[str, str]) -> None:
    options = find_options("nats://other:1", {"context": "prod", "user": "bob"}, env)
    assert (options.servers, options.user, options.password) == (("nats://other:1",), "bob", "s3cret")


def test_a_library_does_not_follow_the_chosen_context_and_the_command_line_does(env: dict[str, str]) -> None:
    assert find_options(None, {}, env).servers == (DEFAULT_URL,)
    assert find_options(None, {}, env, use_chosen=True).user == "alice"
    assert chosen_context(env) == "prod"
    assert chosen_context({"XDG_CONFIG_HOME": "/nowhere"}) == ""


def test_the_environment_names_servers_and_credentials(env: dict[str, str]) -> None:
    variables = {**env, "NATS_URL": "nats://e:1", "NATS_USER": "eve", "NATS_CREDS": "~/c"}
    options = find_options(None, {}, variables)
    assert (options.servers, options.user) == (("nats://e:1",), "eve")
    assert options.creds == str(Path("~/c").expanduser())
    assert find_options(None, {}, {**env, "NATS_CONTEXT": "dev"}).servers == ("nats://dev:4222",)
    assert find_options(None, {}, {**variables, "NATS_CONTEXT": "dev"}).servers == ("nats://e:1",)


def test_credentials_of_the_environment_stay_away_from_a_server_that_the_program_named(env: dict[str, str]) -> None:
    options = find_options("nats://mine", {}, {**env, "NATS_USER": "eve", "NATS_CONTEXT": "prod"})
    assert (options.servers, options.user, options.password) == (("nats://mine",), "", "")


def test_a_context_that_is_missing_or_broken_says_so_without_quoting_it(env: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="there are: broken, dev, prod"):
        read_context("nope", env)
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        read_context("broken", env)
    assert "s3cret" not in f"{caught.value} {caught.value.__cause__}"
    for strange in ("", "../prod", "a/b", ".hidden"):
        with pytest.raises(ConfigError, match="no name of a context"):
            read_context(strange, env)


def test_an_argument_that_does_not_exist_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="'pasword'"):
        find_options("a", cast(ConnectArguments, {"pasword": "x"}), {})
