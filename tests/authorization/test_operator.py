"""Operator mode, the parts that need a clock, a network or a template; the chain itself: test_reference_jwt."""

from datetime import UTC, datetime
from typing import Any

import pytest
from support.operator_chain import Chain, Key

from headwater.authorization.identity import Credentials, Identity, Refusal
from headwater.authorization.operator import Trust
from headwater.errors import ConfigError
from headwater.model.nkey import NkeyKind
from headwater.options.access import OperatorOptions

CHAIN = Chain()
USER = Key(NkeyKind.USER, 1)
NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC).timestamp()


def trust(chain: Chain = CHAIN, **changes: object) -> Trust:
    options: dict[str, object] = {"operators": (chain.operator_jwt,), "resolver": chain.accounts, **changes}
    return Trust(OperatorOptions(**options))  # type: ignore[arg-type]


def decide(now: float = NOON, address: str = "192.168.1.7", **limits: Any) -> Identity | Refusal:
    jwt = CHAIN.user(USER, CHAIN.a, **limits)
    shown = Credentials(jwt=jwt, signature=USER.sign("nonce"), nonce="nonce", address=address)
    found = trust().decide(shown, now)
    assert isinstance(found, Identity | Refusal)
    return found


@pytest.mark.parametrize(
    ("start", "end", "now", "seconds"),
    [
        ("11:00:00", "13:00:00", NOON, 3600.0),
        ("13:00:00", "14:00:00", NOON, None),
        ("22:00:00", "13:30:00", NOON, 5400.0),
        ("22:00:00", "06:00:00", NOON, None),
        ("22:00:00", "06:00:00", NOON + 11 * 3600, 7 * 3600.0),
        ("nonsense", "13:00:00", NOON, None),
    ],
)
def test_a_user_may_be_let_in_at_some_times_of_day(start: str, end: str, now: float, seconds: float | None) -> None:
    found = decide(now, times=[{"start": start, "end": end}], times_location="UTC")
    if seconds is None:
        assert isinstance(found, Refusal)
    else:
        assert isinstance(found, Identity)
        assert found.expires == now + seconds


@pytest.mark.parametrize(
    ("networks", "address", "welcome"),
    [
        (["192.168.0.0/16"], "192.168.1.7", True),
        ("10.0.0.0/8, 192.168.0.0/16", "192.168.1.7", True),
        (["10.0.0.0/8"], "192.168.1.7", False),
        (["nonsense"], "192.168.1.7", False),
        (["::1/128"], "::1", True),
        (["10.0.0.0/8"], "", False),
        ([], "anything", True),
    ],
)
def test_a_user_may_be_bound_to_networks(networks: object, address: str, welcome: bool) -> None:
    assert isinstance(decide(address=address, src=networks), Identity) is welcome


def test_an_unknown_time_zone_refuses_the_user() -> None:
    found = decide(times=[{"start": "00:00:00", "end": "23:59:59"}], times_location="Mars/Olympus")
    assert isinstance(found, Refusal)


def test_templates_are_filled_in_and_unknown_ones_allow_nothing() -> None:
    found = decide(pub={"allow": ["{{subject()}}.x", "{{tag(a)}}.y", "a.{{account-subject()}}"]})
    assert isinstance(found, Identity)
    assert found.rules is not None
    assert found.rules.may_publish(f"{USER.public}.x".encode())
    assert found.rules.may_publish(f"a.{CHAIN.a.public}".encode())
    assert not found.rules.may_publish(b".y")
    nothing = decide(pub={"allow": ["{{tag(a)}}.y"]})
    assert isinstance(nothing, Identity)
    assert nothing.rules is not None
    assert not nothing.rules.may_publish(b"y")
    assert isinstance(decide(pub={"deny": ["{{tag(a)}}"]}), Refusal), "a denial that is not known is not left out"


def test_an_accounts_expiry_ends_its_users_too() -> None:
    chain = Chain()
    chain.accounts[chain.a.public] = chain.account(chain.a, expires=int(NOON) + 10)
    shown = Credentials(jwt=chain.user(USER, chain.a), signature=USER.sign("n"), nonce="n")
    found = trust(chain).decide(shown, NOON)
    assert isinstance(found, Identity)
    assert found.account_expires == NOON + 10
    assert isinstance(trust(chain).decide(shown, NOON + 11), Refusal)


@pytest.mark.parametrize("wrong", ["operator", "stranger", "another key", "junk"])
def test_tokens_that_do_not_hold_stop_the_start(wrong: str) -> None:
    stranger = Key(NkeyKind.OPERATOR, 9)
    resolver = {
        "operator": {},
        "stranger": {CHAIN.a.public: CHAIN.account(CHAIN.a, signed_by=stranger)},
        "another key": {CHAIN.b.public: CHAIN.accounts[CHAIN.a.public]},
        "junk": {CHAIN.a.public: "junk"},
    }[wrong]
    operators = ("junk.junk.junk",) if wrong == "operator" else (CHAIN.operator_jwt,)
    with pytest.raises(ConfigError) as caught:
        trust(operators=operators, resolver=resolver)
    assert "junk.junk" not in str(caught.value)


def test_limits_of_accounts_become_options() -> None:
    chain = Chain(limits={"conn": 7, "payload": 9, "disk_storage": -1, "streams": 3})
    options = {account.name: account for account in trust(chain).options()}
    assert (options[chain.a.public].max_connections, options[chain.a.public].max_payload) == (7, 9)
    jetstream = options[chain.a.public].jetstream
    assert jetstream is not None
    assert (jetstream.max_file, jetstream.max_memory, jetstream.max_streams) == (-1, 0, 3)
    assert options[chain.b.public].jetstream is None
    assert trust(chain).system_account == chain.system.public


ISSUED = 1_700_000_000  # the `iat` that `operator_chain.token` writes


@pytest.mark.parametrize("owner", ["the user's", "everybody's"])
@pytest.mark.parametrize(("moment", "welcome"), [(ISSUED - 1, True), (ISSUED, False), (ISSUED + 1, False)])
def test_a_revocation_holds_for_tokens_issued_up_to_its_moment(owner: str, moment: int, welcome: bool) -> None:
    other = Key(NkeyKind.USER, 2)
    key = USER.public if owner == "the user's" else "*"
    chain = Chain(revocations={key: moment, other.public: ISSUED + 9})
    shown = Credentials(jwt=chain.user(USER, chain.a), signature=USER.sign("n"), nonce="n")
    assert isinstance(trust(chain).decide(shown, NOON), Identity) is welcome


def test_the_later_of_two_revocations_counts() -> None:
    for everybodys, own in ((ISSUED - 1, ISSUED), (ISSUED, ISSUED - 1)):
        chain = Chain(revocations={"*": everybodys, USER.public: own})
        shown = Credentials(jwt=chain.user(USER, chain.a), signature=USER.sign("n"), nonce="n")
        assert isinstance(trust(chain).decide(shown, NOON), Refusal)


def test_a_token_holds_from_its_first_second_to_the_one_before_its_expiry() -> None:
    start, end = int(NOON), int(NOON) + 10
    jwt = CHAIN.user(USER, CHAIN.a, claims={"nbf": start, "exp": end})
    shown = Credentials(jwt=jwt, signature=USER.sign("n"), nonce="n")
    welcome = [isinstance(trust().decide(shown, now), Identity) for now in (start - 1, start, end - 1, end)]
    assert welcome == [False, True, True, False]


def test_entries_without_effect_in_an_accounts_jwt_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    chain = Chain()
    token = chain.account(chain.a, trace={"dest": "traces.>", "sampling": 100})
    found = trust(chain)
    for _ in range(2):
        found.learn(chain.a.public, token)
    (line,) = caplog.messages
    assert line == (
        f"account_jwt account={chain.a.public} name={found.accounts[chain.a.public].token.name} "
        "without_effect=traces: nothing can be published to 'traces.>'"
    )
