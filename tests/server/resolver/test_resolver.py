"""What a resolver in memory shares with the other processes of its server."""

from pathlib import Path

from support.operator_chain import UNLIMITED_ACCOUNT, Chain, token

from headwater.authorization.operator import Trust
from headwater.options.access import OperatorOptions, ResolverOptions
from headwater.server.resolver.resolver import Resolver


def resolver(trust: Trust, directory: Path) -> Resolver:
    made = Resolver(ResolverOptions(directory=str(directory)), trust, lambda _: None)
    made.load()
    return made


def trust_of(chain: Chain, *keys: str) -> Trust:
    preload = {key: chain.accounts[key] for key in keys}
    return Trust(OperatorOptions(operators=(chain.operator_jwt,), resolver=preload))


def test_what_is_pushed_to_one_process_is_known_to_one_that_starts_later(tmp_path: Path) -> None:
    chain = Chain()
    key = chain.a.public
    pushed = chain.account(chain.a, revocations={"*": 1_700_000_100})
    resolver(trust_of(chain, key), tmp_path).take(key, pushed)
    later = trust_of(chain, key)
    resolver(later, tmp_path)
    assert later.tokens[key] == pushed


def test_an_account_that_left_the_configuration_does_not_come_back_from_the_directory(tmp_path: Path) -> None:
    chain = Chain()
    a, b = chain.a.public, chain.b.public
    resolver(trust_of(chain, a, b), tmp_path).take(a, chain.account(chain.a, revocations={"*": 1_700_000_100}))
    later = trust_of(chain, b)
    resolver(later, tmp_path)
    assert list(later.tokens) == [b]


def test_a_newer_jwt_of_the_configuration_is_kept_before_one_that_was_pushed(tmp_path: Path) -> None:
    chain = Chain()
    key = chain.a.public
    resolver(trust_of(chain, key), tmp_path).take(key, chain.account(chain.a, revocations={"*": 1_700_000_100}))
    claims = {"type": "account", "version": 2, "limits": UNLIMITED_ACCOUNT}
    chain.accounts[key] = token(chain.operator, key, claims, iat=1_700_000_200)
    later = trust_of(chain, key)
    resolver(later, tmp_path)
    assert later.tokens[key] == chain.accounts[key]
