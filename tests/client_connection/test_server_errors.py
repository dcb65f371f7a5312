"""What each text of -ERR means to a client."""

import pytest

from headwater.client_connection.server_errors import Refusal, ends_the_connection, refusal_of, server_error
from headwater.errors import AuthorizationError, ServerError
from headwater.wire import error_texts


@pytest.mark.parametrize("text", sorted(error_texts.CLOSING))
def test_every_closing_text_ends_the_connection_in_any_case_of_letters(text: str) -> None:
    assert ends_the_connection(text)
    assert ends_the_connection(text.upper())


@pytest.mark.parametrize(
    ("text", "kind", "ends"),
    [
        ("Authorization Violation", AuthorizationError, True),
        ("User Authentication Expired", AuthorizationError, True),
        ("Account Authentication Expired", AuthorizationError, True),
        ('Permissions Violation for Publish to "a"', AuthorizationError, False),
        ('Permissions Violation for Subscription to "a" using queue "q"', AuthorizationError, False),
        ("Invalid Subject", ServerError, False),
        ("Invalid Publish Subject", ServerError, False),
        ("maximum subscriptions exceeded", ServerError, False),
        ("Stale Connection", ServerError, True),
        ("", ServerError, False),
    ],
)
def test_texts(text: str, kind: type[ServerError], ends: bool) -> None:
    error = server_error(text)
    assert type(error) is kind
    assert error.value == text
    assert ("credentials are missing or wrong" in str(error)) is (text == error_texts.AUTHORIZATION)
    assert ends_the_connection(text) is ends


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ('Permissions Violation for Publish to "a.b"', Refusal(True, "a.b", "")),
        ('permissions violation for subscription to "a.>"', Refusal(False, "a.>", "")),
        ('Permissions Violation for Subscription to "a" using queue "q"', Refusal(False, "a", "q")),
        ('Permissions Violation for Publish with Reply of "a"', Refusal(True, "a", "")),
        ("Permissions Violation", None),
        ("Invalid Subject", None),
    ],
)
def test_what_a_text_refuses(text: str, refusal: Refusal | None) -> None:
    assert refusal_of(text) == refusal
