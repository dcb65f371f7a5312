"""Accounts, what they share, and operators."""

from collections.abc import Callable

import pytest

from headwater.options.access import AccountOptions, ExportOptions, ImportOptions, JetStreamLimits, UserOptions
from headwater.server.config.accounts import find_jwt
from headwater.server.config.draft import Draft

Load = Callable[..., Draft]
Refusal = Callable[..., str]

JWT = "eyJhbGciOiJ.eyJqdGkiOiJ.c2ln_-A"


@pytest.mark.parametrize(
    ("block", "accounts"),
    [
        ("[A, B]", (AccountOptions(name="A"), AccountOptions(name="B"))),
        ("{A: {}}", (AccountOptions(name="A"),)),
        (
            "{A: {users: [{user: a, password: b}], jetstream: enabled}}",
            (
                AccountOptions(
                    name="A", users=(UserOptions(username="a", password="b"),), jetstream=JetStreamLimits()
                ),
            ),
        ),
        ("{A: {jetstream: false}}", (AccountOptions(name="A"),)),
        (
            "{A: {jetstream: {max_mem: 64MB, max_file: 1G, max_streams: 10, max_bytes: true}}}",
            (
                AccountOptions(
                    name="A",
                    jetstream=JetStreamLimits(
                        max_memory=64 << 20, max_file=10**9, max_streams=10, max_bytes_required=True
                    ),
                ),
            ),
        ),
        (
            "{A: {limits: {max_conn: 5, max_payload: 1KB}}}",
            (AccountOptions(name="A", max_connections=5, max_payload=1024),),
        ),
        (
            "{A: {exports: [{stream: s.>, accounts: [B]}, {service: q, response_type: Stream}]}\n"
            " B: {imports: [{stream: {account: A, subject: s.>}, prefix: p},"
            " {service: {account: A, subject: q}, to: local.q}]}}",
            (
                AccountOptions(
                    name="A",
                    exports=(
                        ExportOptions(kind="stream", subject="s.>", accounts=("B",)),
                        ExportOptions(kind="service", subject="q", response="stream"),
                    ),
                ),
                AccountOptions(
                    name="B",
                    imports=(
                        ImportOptions(account="A", subject="s.>", kind="stream", prefix="p"),
                        ImportOptions(account="A", subject="q", kind="service", to="local.q"),
                    ),
                ),
            ),
        ),
    ],
)  # fmt: skip
def test_accounts(load_text: Load, block: str, accounts: tuple[AccountOptions, ...]) -> None:
    assert load_text(f"accounts: {block}").finish().broker.accounts == accounts


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("{A: x}", 'server.conf:1:12: "A" must be a block, not a string'),
        ("{$G: {}}", "an account may not be called '$G'"),
        ("{A: {usrs: []}}", 'unknown field "usrs"; did you mean "users"?'),
        ("{A: {users: [{user: a}]}, B: {users: [{user: a}]}}", 'Duplicate user "a" detected'),
        ("{A: {msg_trace: a.*}}", '"msg_trace" "a.*" is not a subject to publish to'),
        ("{A: {msg_trace: {dest: a, sampling: 0}}}", '"sampling" must be from 1 to 100'),
        ("{A: {msg_trace: {dest: a, sampling: half}}}", '"sampling" must be an integer or a percentage, not a string'),
        ("{A: {exports: [{stream: a, allow_trace: true}]}}", "allow_trace is for services"),
        ("{A: {imports: [{service: {account: A, subject: a}, allow_trace: true}]}}", "allow_trace is for streams"),
        ("{A: {exports: [{stream: a, service: b}]}}", "must be either a stream or a service"),
        ("{A: {exports: [{stream: a..b}]}}", '"stream" "a..b" is not a valid subject'),
        ("{A: {exports: [{service: a, response: maybe}]}}", '"response" must be singleton, stream or chunked'),
        ("{A: {exports: [{stream: a, accounts: [Z]}]}}", '"Z" account not defined for stream export'),
        ("{A: {imports: [{stream: {account: Z, subject: a}}]}}", '"Z" account not defined for stream import'),
        ("{A: {imports: [{stream: {subject: a}}]}}", "an import needs an account name and a subject"),
        ("{A: {imports: [{service: {account: A, subject: a}, prefix: p}]}}", "prefix is for streams"),
        ("{A: {nkey: x}}", '"nkey" is not a valid public nkey for an account'),
        ("{A: {jetstream: {max_mem: lots}}}", '"max_mem" must be a number, not a string'),
        ("5", '"accounts" must be a block, not a number'),
    ],
)
def test_what_is_wrong_with_an_account_is_said(refusal: Refusal, block: str, reason: str) -> None:
    assert reason in refusal(f"accounts: {block}")


def test_a_variable_among_the_accounts_is_no_account(load_text: Load) -> None:
    text = "accounts { PW: secret\n A {users: [{user: a, password: $PW}]} }"
    accounts = load_text(text).finish().broker.accounts
    assert [account.name for account in accounts] == ["A"]
    assert accounts[0].users[0].password == "secret"


@pytest.mark.parametrize("operator", [JWT, "op.jwt"])
def test_an_operator_is_a_jwt_or_a_file_with_one(load_text: Load, operator: str) -> None:
    files = {"op.jwt": f"-----BEGIN NATS OPERATOR JWT-----\n{JWT}\n------END NATS OPERATOR JWT------\n"}
    text = f"operator: {operator}\nresolver: MEMORY\nsystem_account: AS\nresolver_preload {{ AX: {JWT} }}"
    options = load_text(text, files).finish().broker.operator
    assert options is not None
    assert (options.operators, options.resolver, options.system_account) == ((JWT,), {"AX": JWT}, "AS")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("operator: gone.jwt", "\"operator\" names 'gone.jwt', which cannot be read"),
        ("operator: server.conf", '"operator" holds no operator JWT'),
        (f"operator: {JWT}\nresolver_preload: {{A: x}}", "server.conf:2:20: invalid account JWT"),
        (f"operator: {JWT}\nresolver: URL(ftp://x)", "must begin with http:// or https://"),
        (f"operator: {JWT}\nresolver: whatever", '"resolver" must be MEMORY'),
        (f"operator: {JWT}\nresolver: {{type: full}}", 'a resolver of type "full" needs a dir'),
        (f"operator: {JWT}\nresolver: {{type: cache, dir: x, allow_delete: true}}", "takes neither allow_delete"),
        (f"operator: {JWT}\nresolver: {{type: other, dir: x}}", '"type" must be full, cache or memory'),
        (f"resolver_preload: {{A: {JWT}}}", "without an operator"),
    ],
)
def test_what_is_wrong_with_an_operator_is_said(refusal: Refusal, text: str, reason: str) -> None:
    assert reason in refusal(text)


def test_a_jwt_is_found_between_the_lines_around_it() -> None:
    assert find_jwt(f"---\n{JWT}\n---\n") == JWT
    assert find_jwt("nothing") == ""


@pytest.mark.parametrize(
    ("block", "expected"),
    [("a.b", ("a.b", 100)), ('{dest: a, sampling: "25%"}', ("a", 25)), ("{dest: a, sampling: 7}", ("a", 7))],
)
def test_where_traces_go_and_how_many(load_text: Load, block: str, expected: tuple[str, int]) -> None:
    (account,) = load_text(f"accounts: {{A: {{msg_trace: {block}}}}}").finish().broker.accounts
    assert (account.trace_dest, account.trace_sampling) == expected
