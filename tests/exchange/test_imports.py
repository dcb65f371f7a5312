"""Imports without sockets; server/test_reference_imports.py has the clients' view."""

from headwater.exchange.account import Account
from headwater.exchange.imports import ServiceImport, StreamImports
from headwater.exchange.router import Router
from headwater.model.subject_rename import SubjectRename
from headwater.options.access import ExportOptions, ImportOptions
from headwater.options.import_rules import CheckedImport

Received = list[tuple[bytes, bytes]]


def router() -> Router:
    return Router(lambda function: None, 1)


def listen(router: Router, subject: bytes) -> Received:
    received: Received = []
    router.subscribe_internal(subject, lambda name, reply, block, payload: received.append((name, payload)))
    return received


def test_the_brokers_own_subscriptions_import_too() -> None:
    home, there = router(), router()
    imports = StreamImports(home, "A")
    imports.add(SubjectRename("orders.*", "eu.$1"), there)
    home.imports = imports
    received = listen(home, b"eu.*")
    assert there.publish(b"orders.7", b"", b"", b"x") == 1
    assert received == [(b"eu.7", b"x")]
    imports.close()
    assert there.publish(b"orders.7", b"", b"", b"x") == 0
    assert there.sublist.count == 0


def test_a_subscription_beside_the_import_has_no_shadow() -> None:
    home, there = router(), router()
    home.imports = imports = StreamImports(home, "A")
    imports.add(SubjectRename("orders.*", "eu.$1"), there)
    listen(home, b"us.*")
    listen(home, b"eu.a.b")
    assert there.sublist.count == 0


def test_a_service_import_is_known_to_peers_to_await_replies_before_its_first_request() -> None:
    """A request may take another route than the interest sent with it, and arrive first."""
    importer, exporter = (Account(name, router(), None, False) for name in ("HOME", "THERE"))
    options = ImportOptions(account="THERE", subject="ask", kind="service")
    export = ExportOptions(subject="ask", kind="service")
    ServiceImport(importer, exporter, CheckedImport(options, SubjectRename("ask", "ask"), export))
    announced = [subscription.subject for subscription in exporter.router.sublist.all()]
    assert len(announced) == 1
    assert announced[0].startswith(b"_R_.")
    assert announced[0].endswith(b".*")
