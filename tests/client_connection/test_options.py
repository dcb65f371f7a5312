"""Options that make no sense are refused before anything is dialled."""

import pytest

from headwater.client_connection.options import ClientOptions, ConnectArguments
from headwater.errors import ConfigError, SubjectError


@pytest.mark.parametrize(
    "wrong",
    [
        {"connect_timeout": 0.0},
        {"ping_interval": -1.0},
        {"pings_out": 0},
        {"max_pending": 0},
        {"reconnect_wait": -0.1},
        {"reconnect_buffer": -1},
        {"reconnect_attempts": 0},
        {"tls_cert": "a"},
        {"tls_key": "a"},
    ],
)
def test_a_value_that_makes_no_sense_is_a_configuration_error(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        ClientOptions(**wrong)  # type: ignore[arg-type]


def test_an_inbox_prefix_is_a_subject() -> None:
    with pytest.raises(SubjectError):
        ClientOptions(inbox_prefix="a b")


def test_every_argument_of_connect_is_an_option_and_every_option_an_argument() -> None:
    assert set(ConnectArguments.__annotations__) == set(ClientOptions.__dataclass_fields__) - {"servers"}


def test_connect_says_what_we_are_and_nothing_secret() -> None:
    options = ClientOptions(name="me", user="u", password="s3cret", token="s3cret", echo=False)
    introduction = options.introduction()
    assert (introduction.name, introduction.echo, introduction.headers, introduction.protocol) == ("me", False, True, 1)
    assert "s3cret" not in repr(options)
    assert "s3cret" not in repr(introduction)
