"""What a reload may change, and what it may not."""

from pathlib import Path

from headwater.model.worker_options import WorkerOptions
from headwater.options.access import AccountOptions, AuthorizationOptions, JetStreamLimits, UserOptions
from headwater.options.broker import BrokerOptions
from headwater.options.cluster import ClusterOptions
from headwater.server.config.draft import LoggingOptions, ServerConfig
from headwater.server.config.reload import RELOADABLE, compare

CONFIG = ServerConfig(broker=BrokerOptions())


def changed(**fields: object) -> ServerConfig:
    return CONFIG.replace(**fields)


def test_nothing_has_changed() -> None:
    assert compare(CONFIG, CONFIG).changed == ()
    assert compare(CONFIG, CONFIG).refused == ()


def test_limits_times_and_the_log_can_change() -> None:
    after = changed(
        broker=CONFIG.broker.replace(ping_max=5, max_payload=10),
        logging=LoggingOptions(debug=True),
        pid_file=Path("p"),
    )
    comparison = compare(CONFIG, after)
    assert set(comparison.changed) == {"ping_max = 5", "max_payload = 10", "log debug = True", "pid_file = p"}
    assert comparison.refused == ()


def test_what_was_decided_at_the_start_cannot_change() -> None:
    after = changed(broker=CONFIG.broker.replace(host="::1", port=5, server_name="x"), ports_file_dir=Path("d"))
    assert compare(CONFIG, after).refused == tuple(
        f"config reload not supported for {name}" for name in ("host", "port", "server_name", "ports_file_dir")
    )


def test_users_may_change_and_their_secrets_are_not_shown() -> None:
    secret = UserOptions(username="a", password="hunter2")
    accounts = tuple(AccountOptions(name=name, users=(secret,) if name == "A" else ()) for name in ("A", "B"))
    before = changed(broker=BrokerOptions(accounts=(AccountOptions(name="A"), AccountOptions(name="B"))))
    comparison = compare(before, changed(broker=BrokerOptions(accounts=accounts, no_auth_user="a")))
    assert comparison == (("accounts", "no_auth_user"), ())


def test_accounts_may_come_and_change_but_not_go() -> None:
    a, b = AccountOptions(name="A"), AccountOptions(name="B", max_connections=5)
    one, two = (changed(broker=BrokerOptions(accounts=accounts)) for accounts in ((a,), (a, b)))
    assert compare(one, two) == (("accounts",), ())
    assert compare(two, one).refused == ("config reload not supported for accounts",)
    fewer = changed(broker=BrokerOptions(accounts=(a, AccountOptions(name="B", max_connections=1))))
    assert compare(two, fewer) == (("accounts",), ())


def test_what_an_account_may_store_changes_unless_its_streams_are_spread() -> None:
    for worker, refused in (
        (None, ()),
        (WorkerOptions(number=1, count=2, spread=True), ("config reload not supported for accounts",)),
    ):
        none, some = (
            changed(broker=BrokerOptions(worker=worker, accounts=(AccountOptions(name="A", jetstream=limits),)))
            for limits in (None, JetStreamLimits())
        )
        assert compare(none, some).refused == compare(some, none).refused == refused


def test_accounts_may_come_in_a_cluster_too() -> None:
    cluster = ClusterOptions(port=1)
    alone, more = (
        changed(broker=BrokerOptions(cluster=cluster, accounts=accounts))
        for accounts in ((), (AccountOptions(name="A"),))
    )
    assert compare(alone, more) == (("accounts",), ())


def test_a_secret_is_never_shown() -> None:
    after = changed(broker=BrokerOptions(authorization=AuthorizationOptions(token="hunter2")))
    comparison = compare(CONFIG, after)
    assert comparison.changed == ("authorization",)
    assert "hunter2" not in repr(comparison)


def test_every_reloadable_name_is_an_option() -> None:
    assert {name for name in RELOADABLE if not hasattr(CONFIG.broker, name)} == set()
