"""Users and what they may do."""

from collections.abc import Callable

import pytest

from headwater.model.nkey import NkeyKind, encode_nkey
from headwater.options.access import (
    AuthorizationOptions,
    Permissions,
    ResponseRules,
    SubjectRules,
    UserOptions,
)
from headwater.server.config.draft import Draft

ISSUER = encode_nkey(NkeyKind.ACCOUNT, bytes(32))

Load = Callable[..., Draft]
Refusal = Callable[..., str]

KEY = encode_nkey(NkeyKind.USER, bytes(range(32)))


def authorization(load_text: Load, block: str) -> AuthorizationOptions:
    return load_text(f"authorization {block}").finish().broker.authorization


@pytest.mark.parametrize(
    ("block", "options"),
    [
        ("{user: a, pass: b}", AuthorizationOptions(username="a", password="b")),
        ("{username: a, password: $2a$11$xyz}", AuthorizationOptions(username="a", password="$2a$11$xyz")),
        ("{token: t}", AuthorizationOptions(token="t")),
        (
            f"{{users: [{{user: a, password: b}}, {{nkey: {KEY}}}]}}",
            AuthorizationOptions(users=(UserOptions(username="a", password="b"), UserOptions(nkey=KEY))),
        ),
        (
            "{users: [{user: a, pass: b, allowed_connection_types: [standard, WEBSOCKET]}]}",
            AuthorizationOptions(
                users=(
                    UserOptions(username="a", password="b", connection_types=frozenset({"STANDARD", "WEBSOCKET"})),
                )
            ),
        ),
        (
            "{user: a, pass: b, default_permissions: {sub: x}}",
            AuthorizationOptions(
                username="a",
                password="b",
                default_permissions=Permissions(subscribe=SubjectRules(allow=("x",))),
            ),
        ),
    ],
)  # fmt: skip
def test_who_may_connect(load_text: Load, block: str, options: AuthorizationOptions) -> None:
    assert authorization(load_text, block) == options


def test_the_timeout_is_the_brokers(load_text: Load) -> None:
    broker = load_text("authorization {user: a, pass: b, timeout: 0.5}").finish().broker
    assert (broker.auth_timeout, broker.seconds_to_authenticate) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("block", "permissions"),
    [
        ("{publish: a.>}", Permissions(publish=SubjectRules(allow=("a.>",)))),
        ("{pub: [a, b.*]}", Permissions(publish=SubjectRules(allow=("a", "b.*")))),
        (
            '{subscribe: {allow: [a, "b workers"], deny: c.>}}',
            Permissions(subscribe=SubjectRules(allow=("a", "b workers"), deny=("c.>",))),
        ),
        ("{sub {deny: [a]}}", Permissions(subscribe=SubjectRules(deny=("a",)))),
        ("{sub {}}", Permissions()),
        ("{allow_responses: true}", Permissions(responses=ResponseRules())),
        ("{allow_responses: false}", Permissions()),
        (
            '{allow_responses: {max: 5, expires: "1m"}}',
            Permissions(responses=ResponseRules(max_messages=5, expires=60.0)),
        ),
        ("{allow_responses: {max: 0}}", Permissions(responses=ResponseRules())),
    ],
)
def test_permissions(load_text: Load, block: str, permissions: Permissions) -> None:
    users = authorization(load_text, f"{{users: [{{user: a, pass: b, permissions: {block}}}]}}").users
    assert users[0].permissions == permissions


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("{user: a, pass: b, token: c}", "more than one of"),
        ("{user: a, users: [{user: b}]}", "more than one of"),
        ("{users: [{user: a}, {user: a}]}", 'Duplicate user "a" detected'),
        ("{users: {user: a}}", 'server.conf:1:16: "users" must be a list, not a block'),
        ("{users: [a]}", "server.conf:1:24: a user must be a block"),
        ("{users: [{password: b}]}", "server.conf:1:24: a user needs a user or an nkey"),
        ("{users: [{nkey: UABC}]}", '"nkey" is not a valid public nkey for a user'),
        (f"{{users: [{{nkey: {KEY}, user: a}}]}}", "nkey users do not take usernames"),
        ("{users: [{user: a, permissions: {publish: a..b}}]}", '"publish" subject "a..b" is not a valid subject'),
        ('{users: [{user: a, permissions: {publish: "a q"}}]}', '"publish" subject "a q" is not a valid subject'),
        ("{users: [{user: a, permissions: {publish: {alow: a}}}]}", 'unknown field "alow"; did you mean "allow"?'),
        ("{users: [{user: a, permissions: {allow_responses: 5}}]}", '"allow_responses" must be true, false or a block'),
        ("{users: [{user: a, permissions: x}]}", '"permissions" must be a block, not a string'),
        ("{users: [{user: a, connection_types: [FAX]}]}", "invalid connection type FAX"),
        ("{auth_callout {issuer: x}}", '"issuer" is not a valid public account nkey'),
        (f"{{auth_callout {{issuer: {ISSUER}}}}}", "an auth_callout needs auth_users"),
        (f"{{auth_callout {{issuer: {ISSUER}, auth_users: [a], xkey: x}}}}", '"xkey" is not a valid public xkey'),
        ('{timeout: "soon"}', "\"timeout\" 'soon' is no duration"),
        ("x", '"authorization" must be a block, not a string'),
    ],
)
def test_what_is_wrong_with_a_user_is_said(refusal: Refusal, block: str, reason: str) -> None:
    assert reason in refusal(f"authorization {block}")
