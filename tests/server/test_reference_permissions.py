"""What a user may publish, subscribe to and receive, against nats-server and ours with the same file.

A refusal is an -ERR that quotes the subject, and the connection stays. What is denied is hidden from wildcard and from
queue subscriptions too, whatever way it comes.
"""

from collections.abc import Iterator

import pytest
from support.configured_servers import KINDS, Running, ServerShelf, shelf
from support.raw_wire import RawLink, Row, connect_op, still_open, titles

__all__ = ["shelf"]

pytestmark = pytest.mark.interop

CONFIG = """
authorization {
    default_permissions { publish: { deny: "closed.>" }, subscribe: { deny: "closed.>" } }
    users = [
        { user: all, password: p, permissions: {} }
        { user: default, password: p }
        { user: short, password: p, permissions: { publish: "only.this", subscribe: ["a.*", "b"] } }
        { user: lists, password: p, permissions: {
            publish: { allow: ["foo.>", "bar"], deny: ["foo.secret", "foo.*.x"] }
            subscribe: { allow: ["ok.>", "bar", "_INBOX.>"], deny: ["ok.secret", "ok.hidden.*"] } } }
        { user: deny, password: p, permissions: {
            publish: { deny: "secret.>" }, subscribe: { deny: ["secret.>", "exact"] } } }
        { user: queues, password: p, permissions: {
            subscribe: { allow: ["foo", "foo v1", "bar v2.*", "baz *.dev"] } } }
        { user: noqueue, password: p, permissions: { subscribe: { allow: ["foo v1"], deny: ["x"] } } }
        { user: denyqueue, password: p, permissions: { subscribe: { deny: ["foo *.prod", "bar v1"] } } }
        { user: mute, password: p, permissions: { publish: { allow: [] } } }
        { user: responder, password: p, permissions: { subscribe: "service.>", allow_responses: true } }
        { user: twice, password: p, permissions: {
            subscribe: "service.>", publish: "log", allow_responses: { max: 2, expires: "1m" } } }
        { user: brief, password: p, permissions: { subscribe: "service.>", allow_responses: { max: 5, expires: "1ms" } } }
    ]
}
"""


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, shelf: ServerShelf) -> Iterator[Running]:
    yield shelf.get(str(request.param), CONFIG)


def enter(server: Running, user: str, **options: object) -> RawLink:
    link = RawLink(server.port)
    assert link.answer(connect_op(**{"user": user, "pass": "p", **options})) == still_open()
    return link


def no_pub(subject: str) -> bytes:
    return f"-ERR 'Permissions Violation for Publish to \"{subject}\"'\r\n".encode()


def no_sub(subject: str, queue: str = "") -> bytes:
    group = f' using queue "{queue}"' if queue else ""
    return f"-ERR 'Permissions Violation for Subscription to \"{subject}\"{group}'\r\n".encode()


PUBLISHES = [
    ("all", "anything.at.all", True),
    ("all", "closed.x", True),
    ("default", "closed.x", False),
    ("default", "open.x", True),
    ("short", "only.this", True),
    ("short", "only.that", False),
    ("short", "only", False),
    ("short", "only.this.too", False),
    ("lists", "foo.a", True),
    ("lists", "foo", False),
    ("lists", "foo.a.b.c", True),
    ("lists", "foo.secret", False),
    ("lists", "foo.secret.x", False),
    ("lists", "foo.a.x", False),
    ("lists", "bar", True),
    ("lists", "baz", False),
    ("deny", "secret.a", False),
    ("deny", "secret", True),
    ("deny", "SECRET.a", True),
    ("deny", "secret.", True),
    ("responder", "a", False),
    ("twice", "log", True),
    ("twice", "other", False),
    ("queues", "a", True),
]


@pytest.mark.parametrize(("user", "subject", "allowed"), PUBLISHES)
def test_publish(server: Running, user: str, subject: str, allowed: bool) -> None:
    op = f"PUB {subject} 2\r\nhi\r\n".encode()
    with enter(server, user) as link, enter(server, "all") as listener:
        listener.send(b"SUB > 1\r\n")
        assert listener.settle() == b""
        assert link.answer(op) == still_open(b"" if allowed else no_pub(subject))
        delivered = allowed and not subject.endswith(".")
        assert listener.settle() == (f"MSG {subject} 1 2\r\nhi\r\n".encode() if delivered else b"")


def test_a_refused_publish_is_not_confirmed_to_a_verbose_client(server: Running) -> None:
    with RawLink(server.port) as link:
        link.send(connect_op(**{"user": "short", "pass": "p", "verbose": True}))
        assert link.answer(b"PUB no 1\r\nx\r\nPUB only.this 1\r\nx\r\n") == still_open(
            b"+OK\r\n", no_pub("no"), b"+OK\r\n"
        )


def test_a_refused_publish_in_the_middle_of_many_stops_none_of_the_others(server: Running) -> None:
    ops = b"PUB only.this 1\r\na\r\n" * 50 + b"PUB only.that 1\r\nb\r\n" * 50 + b"PUB only.this 1\r\nc\r\n" * 50
    with enter(server, "short") as link, enter(server, "all") as listener:
        listener.send(b"SUB > 1\r\n")
        assert listener.settle() == b""
        assert link.answer(ops) == still_open(no_pub("only.that") * 50)
        assert listener.settle() == b"MSG only.this 1 1\r\na\r\n" * 50 + b"MSG only.this 1 1\r\nc\r\n" * 50


def test_a_reply_subject_that_one_may_not_publish_to_may_be_named(server: Running) -> None:
    with enter(server, "short") as link:
        assert link.answer(b"PUB only.this some.reply 1\r\nx\r\n") == still_open()


SUBSCRIPTIONS = [
    ("default", "closed.x", "", False),
    ("default", "closed.>", "", False),
    ("default", "open", "", True),
    ("short", "a.b", "", True),
    ("short", "a.*", "", True),
    ("short", "a", "", False),
    ("short", "a.b.c", "", False),
    ("short", "b", "g", True),
    ("short", ">", "", False),
    ("short", "*", "", False),
    ("lists", "ok.x", "", True),
    ("lists", "ok.>", "", True),
    ("lists", "ok.*", "", True),
    ("lists", "ok", "", False),
    ("lists", "ok.secret", "", False),
    ("lists", "ok.secret", "g", False),
    ("lists", "ok.hidden.*", "", False),
    ("lists", "ok.hidden.x", "", False),
    ("lists", "ok.hidden", "", True),
    ("lists", ">", "", False),
    ("deny", ">", "", True),
    ("deny", "secret.>", "", False),
    ("deny", "secret.*", "", False),
    ("deny", "secret.a.b", "q", False),
    ("deny", "exact", "", False),
    ("deny", "*", "", True),
    ("queues", "foo", "", True),
    ("queues", "foo", "v1", True),
    ("queues", "foo", "v2", False),
    ("queues", "bar", "", False),
    ("queues", "bar", "v2.a", True),
    ("queues", "bar", "v2", False),
    ("queues", "bar", "v2.a.b", False),
    ("queues", "baz", "x.dev", True),
    ("queues", "baz", "dev", False),
    ("noqueue", "foo", "", False),
    ("noqueue", "foo", "v1", True),
    ("noqueue", "foo", "v2", False),
    ("denyqueue", "foo", "", True),
    ("denyqueue", "foo", "a.prod", False),
    ("denyqueue", "foo", "a.dev", True),
    ("denyqueue", "bar", "v1", False),
    ("denyqueue", "bar", "v2", True),
    ("all", "anything", "_sys_", False),
]


@pytest.mark.parametrize(("user", "subject", "queue", "allowed"), SUBSCRIPTIONS)
def test_subscribe(server: Running, user: str, subject: str, queue: str, allowed: bool) -> None:
    op = " ".join(filter(None, ["SUB", subject, queue, "1"])).encode() + b"\r\n"
    with enter(server, user) as link:
        assert link.answer(op) == still_open(b"" if allowed else no_sub(subject, queue))


def test_a_wider_wildcard_than_what_is_allowed_is_refused_by_ours(server: Running) -> None:
    """A deviation by choice: nats-server matches the `>` like a token, so that `a.*` lets a client subscribe to `a.>`."""
    with enter(server, "short") as link, enter(server, "all") as publisher:
        received = link.answer(b"SUB a.> 1\r\n").output
        publisher.send(b"PUB a.b.c 1\r\nx\r\n")
        assert publisher.settle() == b""
        leaked = link.settle()
        assert (received, leaked) == ((no_sub("a.>"), b"") if server.is_ours else (b"", b"MSG a.b.c 1 1\r\nx\r\n"))


def test_a_list_of_nothing_allows_nothing_with_ours(server: Running) -> None:
    """A deviation by choice: nats-server takes an empty `allow` for no restriction at all."""
    with enter(server, "mute") as link:
        assert link.answer(b"PUB a 1\r\nx\r\n") == still_open(no_pub("a") if server.is_ours else b"")


FILTERED = [
    Row("a wildcard", b"SUB ok.> 1\r\n", b"MSG ok.open 1 2\r\nhi\r\n"),
    Row("a narrower wildcard", b"SUB ok.* 1\r\n", b"MSG ok.open 1 2\r\nhi\r\n"),
    Row("a queue group", b"SUB ok.> workers 1\r\n", b"MSG ok.open 1 2\r\nhi\r\n"),
    Row("two at once", b"SUB ok.> 1\r\nSUB ok.> w 2\r\n", b"MSG ok.open 1 2\r\nhi\r\nMSG ok.open 2 2\r\nhi\r\n"),
]


@pytest.mark.parametrize("row", FILTERED, ids=titles)
def test_what_is_denied_is_left_out_of_wider_subscriptions(server: Running, row: Row) -> None:
    with enter(server, "lists") as link, enter(server, "all") as publisher:
        assert link.answer(row.sent) == still_open()
        for subject in (b"ok.secret", b"ok.hidden.x", b"ok.open"):
            publisher.send(b"PUB " + subject + b" 2\r\nhi\r\n")
        assert publisher.settle() == b""
        received = link.settle()
        assert sorted(received.split(b"MSG ")) == sorted(row.received.split(b"MSG "))


def test_a_default_user_is_bound_too_before_and_after_connect(server: Running, shelf: ServerShelf) -> None:
    users = """authorization { users = [ { user: guest, password: p, permissions: {
        publish: "free", subscribe: { deny: "secret" } } } ] }
    no_auth_user: guest"""
    port = shelf.get(server.kind, users).port
    for connect in (b"", connect_op()):
        with RawLink(port) as link:
            link.send(connect)
            received = link.answer(b"PUB other 1\r\nx\r\nSUB secret 1\r\n").output
            assert received.replace(b"+OK\r\n", b"") == no_pub("other") + no_sub("secret")


def test_what_one_member_may_not_have_another_gets(server: Running) -> None:
    with enter(server, "lists") as limited, enter(server, "all") as free, enter(server, "all") as publisher:
        for link in (limited, free):
            link.send(b"SUB ok.> workers 1\r\n")
            assert link.settle() == b""
        publisher.send(b"PUB ok.secret 1\r\nx\r\n" * 20)
        assert publisher.settle() == b""
        assert limited.settle() == b""
        assert free.settle() == b"MSG ok.secret 1 1\r\nx\r\n" * 20


def test_what_is_denied_does_not_count_towards_the_end_of_a_subscription(server: Running) -> None:
    with enter(server, "lists") as link, enter(server, "all") as publisher:
        assert link.answer(b"SUB ok.> 1\r\nUNSUB 1 2\r\n") == still_open()
        publisher.send(b"PUB ok.secret 1\r\nx\r\n" * 5 + b"PUB ok.a 1\r\n1\r\nPUB ok.a 1\r\n2\r\nPUB ok.a 1\r\n3\r\n")
        assert publisher.settle() == b""
        assert link.settle() == b"MSG ok.a 1 1\r\n1\r\nMSG ok.a 1 1\r\n2\r\n"


def test_a_response_may_be_sent_once_and_only_where_one_was_asked_for(server: Running) -> None:
    with enter(server, "responder") as service, enter(server, "all") as requester:
        assert service.answer(b"SUB service.> 1\r\n") == still_open()
        requester.send(b"SUB inbox.* 1\r\nPUB service.a inbox.1 2\r\nhi\r\n")
        assert requester.settle() == b""
        assert service.settle() == b"MSG service.a 1 inbox.1 2\r\nhi\r\n"
        assert service.answer(b"PUB inbox.2 1\r\nx\r\n") == still_open(no_pub("inbox.2"))
        assert service.answer(b"PUB inbox.1 2\r\nok\r\n") == still_open()
        assert requester.settle() == b"MSG inbox.1 1 2\r\nok\r\n"
        assert service.answer(b"PUB inbox.1 2\r\nok\r\n") == still_open(no_pub("inbox.1"))
        assert requester.settle() == b""


def test_as_many_responses_as_are_allowed_may_be_sent(server: Running) -> None:
    with enter(server, "twice") as service, enter(server, "all") as requester:
        assert service.answer(b"SUB service.> 1\r\n") == still_open()
        requester.send(b"SUB inbox.* 1\r\nPUB service.a inbox.1 2\r\nhi\r\nPUB service.a log 2\r\nhi\r\n")
        assert requester.settle() == b""
        service.settle()
        # All in one write: one run of equal ops.
        assert service.answer(b"PUB inbox.1 1\r\nx\r\n" * 4) == still_open(no_pub("inbox.1") * 2)
        assert requester.settle() == b"MSG inbox.1 1 1\r\nx\r\n" * 2
        assert service.answer(b"PUB log 1\r\nx\r\n" * 4) == still_open()


def test_a_response_comes_too_late_when_its_time_is_over(server: Running) -> None:
    with enter(server, "brief") as service, enter(server, "all") as requester:
        assert service.answer(b"SUB service.> 1\r\n") == still_open()
        requester.send(b"PUB service.a inbox.1 2\r\nhi\r\n")
        assert requester.settle() == b""
        service.settle()
        for _ in range(50):  # some round trips: longer than the millisecond that it has
            service.settle()
        assert service.answer(b"PUB inbox.1 2\r\nok\r\n") == still_open(no_pub("inbox.1"))


RESERVED = [
    Row("a gateway's prefix", b"PUB _GR_.x 1\r\nx\r\n", no_pub("_GR_.x")),
    Row(
        "a service's reply",
        b"PUB a _R_.x 1\r\nx\r\n",
        b"-ERR 'Permissions Violation for Publish with Reply of \"_R_.x\"'\r\n",
    ),
    Row(
        "a gateway's reply",
        b"PUB a _GR_.x 1\r\nx\r\n",
        b"-ERR 'Permissions Violation for Publish with Reply of \"_GR_.x\"'\r\n",
    ),
    Row(
        "an acknowledgement as reply",
        b"PUB a $JS.ACK.s.c.1.1.1.1.0 1\r\nx\r\n",
        b"-ERR 'Permissions Violation for Publish with Reply of \"$JS.ACK.s.c.1.1.1.1.0\"'\r\n",
    ),
    Row("an inbox", b"PUB _INBOX.x _INBOX.y 1\r\nx\r\n", b""),
    Row("one's own underscore", b"PUB _x $x 1\r\nx\r\n", b""),
    Row("a subject of one letter", b"PUB _ $ 1\r\nx\r\n", b""),
]


@pytest.mark.parametrize("row", RESERVED, ids=titles)
def test_the_servers_own_subjects(server: Running, row: Row) -> None:
    with enter(server, "all") as link:
        assert link.answer(row.sent) == still_open(row.received)


@pytest.mark.parametrize(
    "subject", [b'a"b', b"a\\b", b"a\x00b", b"a\xffb", "ä.ö".encode(), b"a\x7f", "\u2028".encode()]
)
def test_a_refusal_quotes_the_subject_as_go_does(server: Running, subject: bytes) -> None:
    quoted = {
        b'a"b': b'a\\"b',
        b"a\\b": b"a\\\\b",
        b"a\x00b": b"a\\x00b",
        b"a\xffb": b"a\\xffb",
        b"a\x7f": b"a\\x7f",
        "\u2028".encode(): b"\\u2028",
    }.get(subject, subject)
    with enter(server, "short") as link:
        output = b"SUB " + subject + b" 1\r\nPUB " + subject + b" 1\r\nx\r\n"
        assert link.answer(output) == still_open(
            b"-ERR 'Permissions Violation for Subscription to \"" + quoted + b"\"'\r\n",
            b"-ERR 'Permissions Violation for Publish to \"" + quoted + b"\"'\r\n",
        )
