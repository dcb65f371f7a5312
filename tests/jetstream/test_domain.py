"""The second name of the API, and the subjects that name domain and account. Clients and the real server:
test_reference_domain.py, tests/interop/test_domain_clients.py."""

from headwater.exchange.router import Router
from headwater.jetstream.domain import Domain, subscribe_domain


def test_both_forms_of_a_consumers_subjects_name_what_they_belong_to() -> None:
    short, long, given_out = Domain("hub", "$G").heads("ACK", "S", "c")
    assert (short, long) == (b"$JS.ACK.S.c.", b"$JS.ACK.hub.szMpdrwD.S.c.")
    assert given_out == short
    assert Domain().heads("FC", "S", "c")[1] == b"$JS.FC._.szMpdrwD.S.c."
    assert Domain("hub", "$G", scoped=True).heads("FC", "S", "c")[2] == b"$JS.FC.hub.szMpdrwD.S.c."


def test_what_is_asked_under_a_domain_is_handed_on_under_its_plain_name() -> None:
    router = Router(lambda work: None, 1, 1 << 20)
    requested: list[bytes] = []
    stored: list[bytes] = []
    router.subscribe_internal(b"$KV.b.>", lambda subject, *rest: stored.append(subject))
    subscribe_domain(router, "hub", lambda subject, *rest: requested.append(subject))
    subjects = [b"INFO", b"STREAM.INFO.S", b"CONSUMER.MSG.NEXT.S.c", b"$KV.b.key", b"$KV.other.key", b"FROB", b"INFO.S"]
    reached = [router.publish(b"$JS.hub.API." + subject, b"", b"", b"") for subject in subjects]
    assert requested == [b"$JS.API.INFO", b"$JS.API.STREAM.INFO.S", b"$JS.API.CONSUMER.MSG.NEXT.S.c"]
    assert stored == [b"$KV.b.key"]
    assert reached == [1, 1, 1, 1, 0, 0, 0]
