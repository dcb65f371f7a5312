"""Who gets what on the wire: subjects, wildcards, queue groups, auto-unsubscribe, requests and no-responders.

As in test_wire_behaviour.py, every test runs against the real nats-server, which proves it, and against our broker.
"""

import pytest
from support.headwater_server import HeadwaterServer
from support.nats_server import NatsServer
from support.raw_wire import Row, connect_op, dial, split_deliveries, still_open, titles

Server = HeadwaterServer | NatsServer

pytestmark = pytest.mark.interop


# --- subjects and subscriptions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("subject", [b"foo.", b".foo", b"foo..bar", b".", b"a.>.b", b">.a"])
def test_sub_of_an_invalid_subject_is_refused_and_stays_open(server: Server, subject: bytes) -> None:
    with dial(server.port) as link:
        assert link.answer(b"SUB " + subject + b" 1\r\n") == still_open(b"-ERR 'Invalid Subject'\r\n")


MATCHES = [
    (b"foo", b"foo", True),
    (b"foo", b"Foo", False),
    (b"foo", b"foo.bar", False),
    (b"*", b"foo", True),
    (b"*", b"foo.bar", False),
    (b"foo.*", b"foo.bar", True),
    (b"foo.*", b"foo.bar.baz", False),
    (b"foo.*", b"foo", False),
    (b"*.bar", b"foo.bar", True),
    (b"foo.*.baz", b"foo.bar.baz", True),
    (b"foo.>", b"foo.bar", True),
    (b"foo.>", b"foo.bar.baz", True),
    (b"foo.>", b"foo", False),
    (b">", b"foo.bar.baz", True),
    (b"*.>", b"foo", False),
    (b"*.*", b"foo.bar", True),
    (b"foo*", b"foobar", False),
    (b"foo*", b"foo*", True),
    (b"foo>.x", b"foo>.x", True),
    (b">>", b"a", False),
    (b">>", b">>", True),
    (b"foo.*", b"foo.*", True),
    (b"foo.x", b"foo.*", False),
    (b"foo.>", b"foo.>", True),
    (b"foo.x", b"foo.>", False),
    (b">", b"foo..bar", False),
    (b">", b".foo", False),
    (b">", b"foo.", False),
    (b"*.*", b"foo.", False),
]


@pytest.mark.parametrize(("pattern", "subject", "delivered"), MATCHES)
def test_wildcards(server: Server, pattern: bytes, subject: bytes, delivered: bool) -> None:
    with dial(server.port) as link:
        link.send(b"SUB " + pattern + b" 1\r\nPUB " + subject + b" 1\r\nx\r\n")
        assert link.settle() == (b"MSG " + subject + b" 1 1\r\nx\r\n" if delivered else b"")


def test_a_subject_of_1900_tokens_is_fine(server: Server) -> None:
    subject = b".".join([b"a"] * 1900)
    with dial(server.port) as link:
        link.send(b"SUB " + subject + b" 1\r\nPUB " + subject + b" 1\r\nx\r\n")
        assert link.settle() == b"MSG " + subject + b" 1 1\r\nx\r\n"


@pytest.mark.parametrize("sid", [b"1", b"007", b"-5", b"sid.with.dots", b"9" * 1000, b"\xff"])
def test_a_sid_is_any_token(server: Server, sid: bytes) -> None:
    with dial(server.port) as link:
        link.send(b"SUB foo " + sid + b"\r\nPUB foo 1\r\nx\r\nUNSUB " + sid + b"\r\nPUB foo 1\r\ny\r\n")
        assert link.settle() == b"MSG foo " + sid + b" 1\r\nx\r\n"


def test_of_two_subs_with_one_sid_the_first_stays(server: Server) -> None:
    with dial(server.port) as link:
        link.send(b"SUB foo 1\r\nSUB bar 1\r\nPUB bar 1\r\nb\r\nPUB foo 1\r\nf\r\n")
        assert link.settle() == b"MSG foo 1 1\r\nf\r\n"


def test_an_invalid_subject_on_a_sid_in_use_is_not_even_looked_at(server: Server) -> None:
    with dial(server.port, verbose=True) as link:
        assert link.answer(b"SUB foo 1\r\nSUB bar. 1\r\n") == still_open(b"+OK\r\n+OK\r\n")


def test_two_subscriptions_of_one_link_each_get_the_message(server: Server) -> None:
    with dial(server.port) as link:
        link.send(b"SUB a.* 1\r\nSUB a.> 2\r\nSUB a.b 3\r\nSUB b 4\r\nPUB a.b 1\r\nx\r\n")
        deliveries, lines = split_deliveries(link.settle())
        assert sorted(delivery.sid for delivery in deliveries) == [b"1", b"2", b"3"]
        assert lines == []


UNSUBS = [
    Row("no max removes now", b"UNSUB 1\r\n", b""),
    Row("max 1 lets one pass", b"UNSUB 1 1\r\n", b"1"),
    Row("max 2 lets two pass", b"UNSUB 1 2\r\n", b"12"),
    Row("max 0 removes now", b"UNSUB 1 0\r\n", b""),
    Row("a negative max removes now", b"UNSUB 1 -1\r\n", b""),
    Row("a max of letters removes now", b"UNSUB 1 abc\r\n", b""),
    Row("a max that overflows removes now", b"UNSUB 1 99999999999999999999\r\n", b""),
    Row("another sid changes nothing", b"UNSUB 2\r\n", b"1234"),
    Row("max can be raised", b"UNSUB 1 1\r\nUNSUB 1 3\r\n", b"123"),
    Row("a later plain UNSUB wins", b"UNSUB 1 3\r\nUNSUB 1\r\n", b""),
]


@pytest.mark.parametrize("row", UNSUBS, ids=titles)
def test_unsub(server: Server, row: Row) -> None:
    publishes = b"".join(b"PUB foo 1\r\n%c\r\n" % digit for digit in b"1234")
    with dial(server.port) as link:
        link.send(b"SUB foo 1\r\n" + row.sent + publishes)
        assert link.settle() == b"".join(b"MSG foo 1 1\r\n%c\r\n" % digit for digit in row.received)


def test_unsub_max_counts_from_the_sub_not_from_the_unsub(server: Server) -> None:
    two = b"PUB foo 1\r\n1\r\nPUB foo 1\r\n2\r\n"
    with dial(server.port) as link:
        link.send(b"SUB foo 1\r\n" + two)
        assert link.settle() == b"MSG foo 1 1\r\n1\r\nMSG foo 1 1\r\n2\r\n"
        link.send(b"UNSUB 1 2\r\nPUB foo 1\r\n3\r\n")
        assert link.settle() == b"", "two have been delivered, so a max of two removes it now"


def test_a_sid_is_free_again_after_its_last_message(server: Server) -> None:
    with dial(server.port) as link:
        link.send(b"SUB foo 1\r\nUNSUB 1 1\r\nPUB foo 1\r\nx\r\nSUB bar 1\r\nPUB bar 1\r\ny\r\n")
        assert link.settle() == b"MSG foo 1 1\r\nx\r\nMSG bar 1 1\r\ny\r\n"


def test_a_queue_group_gives_each_message_to_one_member(server: Server) -> None:
    with dial(server.port) as publisher, dial(server.port) as first, dial(server.port) as second:
        first.send(b"SUB work.* crew 1\r\nSUB work.> audit 2\r\n")
        second.send(b"SUB work.1 crew 1\r\nSUB work.1 3\r\n")
        assert first.settle() == second.settle() == b""
        publisher.send(b"PUB work.1 1\r\nx\r\n" * 200)
        assert publisher.settle() == b""
        at_first = [delivery.sid for delivery in split_deliveries(first.settle())[0]]
        at_second = [delivery.sid for delivery in split_deliveries(second.settle())[0]]
    assert at_first.count(b"2") == 200, "another group is independent"
    assert at_second.count(b"3") == 200, "a plain subscription is independent"
    assert at_first.count(b"1") + at_second.count(b"1") == 200
    assert at_first.count(b"1") > 20, "both members work, also where one of them subscribed with a wildcard"
    assert at_second.count(b"1") > 20


def test_a_queue_group_prefers_no_member_that_may_not_hear_itself(server: Server) -> None:
    with dial(server.port, echo=False) as deaf, dial(server.port) as other:
        other.send(b"SUB jobs crew 1\r\n")
        assert other.settle() == b""
        deaf.send(b"SUB jobs crew 1\r\n" + b"PUB jobs 1\r\nx\r\n" * 50)
        assert deaf.settle() == b""
        assert len(split_deliveries(other.settle())[0]) == 50


def test_request_and_reply(server: Server) -> None:
    with dial(server.port) as service, dial(server.port) as caller:
        service.send(b"SUB time.* 9\r\n")
        assert service.settle() == b""
        caller.send(b"SUB _INBOX.abc.* 1\r\nPUB time.now _INBOX.abc.1 0\r\n\r\n")
        assert caller.settle() == b""
        assert service.settle() == b"MSG time.now 9 _INBOX.abc.1 0\r\n\r\n"
        service.send(b"PUB _INBOX.abc.1 4\r\nnoon\r\n")
        assert service.settle() == b""
        assert caller.settle() == b"MSG _INBOX.abc.1 1 4\r\nnoon\r\n"


def test_a_publisher_keeps_its_order_at_every_subscriber(server: Server) -> None:
    with dial(server.port) as publisher, dial(server.port) as subscriber:
        subscriber.send(b"SUB n.> 1\r\n")
        assert subscriber.settle() == b""
        publisher.send(b"".join(b"PUB n.%d 4\r\n%04d\r\n" % (number % 7, number) for number in range(2000)))
        assert publisher.settle() == b""
        bodies = [delivery.body for delivery in split_deliveries(subscriber.settle())[0]]
        assert bodies == [b"%04d\r\n" % number for number in range(2000)]


def test_subscriptions_of_a_closed_link_are_gone(server: Server) -> None:
    with dial(server.port) as caller:
        caller.send(connect_op(no_responders=True) + b"SUB inbox 1\r\n")
        with dial(server.port) as service:
            service.send(b"SUB svc 1\r\n")
            assert service.settle() == b""
            assert caller.answer(b"PUB svc inbox 0\r\n\r\n") == still_open()
            service.end_sending()
            assert service.receive_end() == b"MSG svc 1 inbox 0\r\n\r\n"
        assert b"NATS/1.0 503\r\n" in caller.answer(b"PUB svc inbox 0\r\n\r\n").output


# --- no responders ---------------------------------------------------------------------------------------------------


def no_responders(reply: bytes, sid: bytes, subject: bytes) -> bytes:
    block = b"NATS/1.0 503\r\nNats-Subject: " + subject + b"\r\n\r\n"
    return b"HMSG " + reply + b" " + sid + b" %d %d\r\n" % (len(block), len(block)) + block + b"\r\n"


def test_a_request_that_nobody_hears_is_answered_with_503(server: Server) -> None:
    with dial(server.port, no_responders=True) as link:
        link.send(b"SUB inbox.* 4\r\nPUB nobody.home inbox.1 2\r\nhi\r\n")
        assert link.settle() == no_responders(b"inbox.1", b"4", b"nobody.home")


def test_503_needs_a_subscription_of_the_publisher_that_matches_the_reply(server: Server) -> None:
    with dial(server.port, no_responders=True) as link, dial(server.port) as other:
        other.send(b"SUB inbox.* 1\r\n")
        assert other.settle() == b""
        assert link.answer(b"PUB nobody inbox.1 0\r\n\r\n") == still_open()
        assert other.settle() == b""


def test_503_ignores_queue_subscriptions(server: Server) -> None:
    with dial(server.port, no_responders=True) as link:
        assert link.answer(b"SUB inbox crew 1\r\nPUB nobody inbox 0\r\n\r\n") == still_open()
        expected = no_responders(b"inbox", b"2", b"nobody")
        assert link.answer(b"SUB inbox 2\r\nPUB nobody inbox 0\r\n\r\n") == still_open(expected)


def test_503_is_not_sent_to_a_client_that_did_not_ask_for_it(server: Server) -> None:
    with dial(server.port) as link:
        assert link.answer(b"SUB inbox 1\r\nPUB nobody inbox 0\r\n\r\n") == still_open()


def test_503_is_not_sent_for_a_publish_without_a_reply(server: Server) -> None:
    with dial(server.port, no_responders=True) as link:
        assert link.answer(b"SUB > 1\r\nUNSUB 1\r\nPUB nobody 0\r\n\r\n") == still_open()


def test_503_fires_when_only_own_subscriptions_match_and_echo_is_off(server: Server) -> None:
    with dial(server.port, no_responders=True, echo=False) as link:
        link.send(b"SUB svc 1\r\nSUB inbox 2\r\nPUB svc inbox 0\r\n\r\n")
        assert link.settle() == no_responders(b"inbox", b"2", b"svc")


def test_503_is_not_counted_against_unsub_max(server: Server) -> None:
    with dial(server.port, no_responders=True) as link:
        link.send(b"SUB inbox 2\r\nUNSUB 2 1\r\nPUB svc inbox 0\r\n\r\nPUB inbox 1\r\nx\r\nPUB inbox 1\r\ny\r\n")
        assert link.settle() == no_responders(b"inbox", b"2", b"svc") + b"MSG inbox 2 1\r\nx\r\n"


def test_hpub_of_a_request_that_nobody_hears_is_answered_with_503(server: Server) -> None:
    with dial(server.port, no_responders=True) as link:
        link.send(b"SUB inbox 2\r\nHPUB svc inbox 12 12\r\nNATS/1.0\r\n\r\n\r\n")
        assert link.settle() == no_responders(b"inbox", b"2", b"svc")


# --- reserved names --------------------------------------------------------------------------------------------------


def test_the_queue_named_sys_is_refused(server: Server) -> None:
    with dial(server.port) as link:
        expected = b'-ERR \'Permissions Violation for Subscription to "foo" using queue "_sys_"\'\r\n'
        assert link.answer(b"SUB foo _sys_ 1\r\n") == still_open(expected)
