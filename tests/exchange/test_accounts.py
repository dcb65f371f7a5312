"""Accounts: their routers, their limits, and names that cannot escape their folder."""

from headwater.exchange.accounts import Accounts
from headwater.options.access import AccountOptions


def make(*options: AccountOptions, system: str = "$SYS") -> Accounts:
    return Accounts(options, system, lambda function: None, 1 << 20)


def test_the_global_and_the_system_account_are_always_there() -> None:
    accounts = make(AccountOptions(name="A"))
    assert [account.name for account in accounts] == ["$G", "$SYS", "A"]
    assert [account.is_system for account in accounts] == [False, True, False]
    assert [account.name for account in make(AccountOptions(name="S"), system="S")] == ["$G", "S"]


def test_each_account_has_its_own_router() -> None:
    accounts = make(AccountOptions(name="A"))
    received: list[bytes] = []
    accounts["A"].router.subscribe_internal(b">", lambda subject, *rest: received.append(subject))
    accounts["$G"].router.publish(b"global", b"", b"", b"")
    accounts["A"].router.publish(b"own", b"", b"", b"")
    assert received == [b"own"]


def test_an_account_is_full_at_its_limit() -> None:
    account = make(AccountOptions(name="A", max_connections=1))["A"]
    assert not account.full
    account.connections = 1
    assert account.full
    assert not make(AccountOptions(name="A"))["A"].full


def test_no_name_leads_out_of_the_folder() -> None:
    names = ["../x", "..", ".", "a/b", "a\\b", "A", "a\0b", "ä"]
    folders = [make(AccountOptions(name=name))[name].directory for name in names]
    assert len(set(folders)) == len(names)
    assert all(folder.startswith("account-") and not set(folder) & set("/\\\0") for folder in folders)
