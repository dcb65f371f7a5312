"""Publishes that arrive together are delivered as if each had arrived alone, whatever was handled as a run or a series."""

from hypothesis import given
from hypothesis import strategies as st
from support.fake_link import FakeLink
from support.session_desk import PLAIN, Desk

from headwater.authorization.guard import Guard
from headwater.authorization.permissions import Rules
from headwater.exchange.session import Session
from headwater.options.access import Permissions, ResponseRules, SubjectRules

PATTERNS = [b">", b"a.>", b"a.*", b"*.b", b"a.b", b"a.b.c", b"b", b"_INBOX.x.*", b"_INBOX.>", b"a.*.>", b"c"]
SUBJECTS = [
    b"a.b", b"a.c", b"a.longer-than-eight", b"a.b.c", b"a.b.c.d", b"b", b"c", b"d.b", b"a", b"a.", b"a..b", b".a", b"a.b.",
    b"_INBOX.x.1", b"_INBOX.x.22", b"_INBOX.x.", b"_INBOX.x.1.2", b"_GR_.1", b"$NRG.1", b"$JS.x", "a.ü".encode(), b"a.\x01",
]  # fmt: skip
REPLIES = [b"", b"", b"", b"r.1", b"r.2", b"_INBOX.x.9", b"_R_.1", b"_GR_.1", b"$JS.ACK.1", b"7", b"7x", b"RRR", b"_"]
FORMS = [b"PUB %b %b%d\r\n%b\r\n"] * 9 + [
    b"pub %b %b%d\r\n%b\r\n", b"PUB  %b %b%d\r\n%b\r\n", b"PUB %b %b%d \r\n%b\r\n", b"PUB %b\t%b%d\r\n%b\r\n",
    b"PUB %b %b%d\n%b\r\n", b"PUB %b %b00%d\r\n%b\r\n", b"PUB %b %b%d\r\n%bxx", b"PUB %b %bx%d\r\n%b\r\n",
]  # fmt: skip


@st.composite
def ops(draw: st.DrawFn) -> bytes:
    """One op of a client: mostly a PUB in the common form, on a few subjects."""
    kind = draw(st.integers(0, 19))
    if kind == 0:
        return draw(st.sampled_from([b"PING\r\n", b"UNSUB 1\r\n", b"SUB a.b 77\r\n"]))
    payload = draw(st.sampled_from([b"", b"x", b"PUB a.b 1\r\n", b"y" * 7, b"z" * 90, b"\r\n"]))
    subject = draw(st.sampled_from(SUBJECTS[: draw(st.sampled_from([1, 3, 5, len(SUBJECTS)]))]))
    if kind == 1:
        block = draw(st.sampled_from([b"NATS/1.0\r\n\r\n", b"NATS/1.0\r\na: 1\r\n\r\n"]))
        return b"HPUB %b %d %d\r\n%b%b\r\n" % (subject, len(block), len(block) + len(payload), block, payload)
    reply = draw(st.sampled_from(REPLIES))
    form = draw(st.sampled_from(FORMS)) if kind < 5 else FORMS[0]
    return form % (subject, reply + b" " if reply else b"", len(payload), payload)


SUBSCRIPTION = st.tuples(
    st.integers(0, 3),
    st.sampled_from(PATTERNS),
    st.sampled_from([b"", b"", b"", b"q"]),
    st.sampled_from([0, 0, 0, 1, 3]),
)


def build(
    subscriptions: list[tuple[int, bytes, bytes, int]], connect: bytes, permissions: Permissions | None = None
) -> tuple[Desk, list[tuple[Session, FakeLink]]]:
    """A publisher, the first, with these permissions, and three more clients with these subscriptions."""
    desk = Desk(max_payload=80)
    clients = [
        desk.connect(connect),
        *(desk.connect() for _ in range(2)),
        desk.connect(PLAIN.replace(b"true", b"false")),
    ]
    if permissions is not None:
        clients[0][0].membership.guard = Guard(Rules(permissions), lambda: 0.0)
    for sid, (which, pattern, queue, maximum) in enumerate(subscriptions):
        text = b"SUB %b %b%d %d\r\n" % (pattern, queue, sid, sid) if queue else b"SUB %b %d\r\n" % (pattern, sid)
        desk.feed(clients[which][0], text + (b"UNSUB %d %d\r\n" % (sid, maximum) if maximum else b""))
    return desk, clients


def outcome(desk: Desk, clients: list[tuple[Session, FakeLink]]) -> list[object]:
    """What every client got, and the counts of what was sent and received."""
    return [
        (link.take_flushed(), link.closed, session.traffic.messages, session.traffic.bytes, session.outlet.out_messages,
         session.outlet.out_bytes,
         sorted((each.sid, desk.router.sublist.delivered(each)) for each in session.outlet.subscriptions.values()))
        for session, link in clients
    ] + list(desk.register.noted)  # fmt: skip


def fed(desk: Desk, session: Session, data: bytes, rest: bytes = b"") -> bytes:
    """Feed `rest` and `data`; returns what is left of an incomplete op."""
    whole = bytearray(rest + data)
    return bytes(whole[session.receive(whole, len(whole)) :])


QUIET = PLAIN.replace(b'"verbose"', b'"echo":false,"verbose"')
VERBOSE = PLAIN.replace(b'"verbose":false', b'"verbose":true')
PERMISSIONS = [
    None,
    Permissions(publish=SubjectRules(allow=("a.>", "_INBOX.>"), deny=("a.c",))),
    Permissions(publish=SubjectRules(deny=("b", "a.*.c"))),
    Permissions(responses=ResponseRules(max_messages=1)),
]


@given(
    st.lists(SUBSCRIPTION, max_size=6), st.lists(ops(), max_size=40), st.booleans(),
    st.sampled_from([PLAIN, QUIET, VERBOSE]), st.sampled_from(PERMISSIONS),
)  # fmt: skip
def test_publishes_that_arrive_together_are_delivered_as_if_each_had_arrived_alone(
    subscriptions: list[tuple[int, bytes, bytes, int]], sent: list[bytes], repeated: bool, connect: bytes,
    permissions: Permissions | None,
) -> None:  # fmt: skip
    sent = sent * 3 if repeated else sent
    together, alone = build(subscriptions, connect, permissions), build(subscriptions, connect, permissions)
    fed(together[0], together[1][0][0], b"".join(sent))
    rest = b""
    for op in sent:
        rest = fed(alone[0], alone[1][0][0], op, rest)
    assert outcome(*together) == outcome(*alone)


def test_a_series_longer_than_its_arrays_and_one_that_is_cut_off_are_whole() -> None:
    desk = Desk()
    publisher, (_, link) = desk.connect()[0], (receiver := desk.connect())
    desk.feed(receiver[0], b"SUB n.* 5\r\nSUB m 123456789\r\n")
    for subject, shown in ((b"n.%d", b"MSG n.%d 5 %d\r\n%b\r\n"), (b"m", b"MSG m 123456789 %d\r\n%b\r\n")):
        sent, expected = b"", b""
        for number in range(1000):
            name = subject % number if b"%" in subject else subject
            payload = b"p" * (number % 11)
            sent += b"PUB %b %d\r\n%b\r\n" % (name, len(payload), payload)
            given_values = (number, len(payload), payload) if b"n.%d" in shown else (len(payload), payload)
            expected += shown % given_values
        cut = bytearray(sent[:-1])
        used = publisher.receive(cut, len(cut))
        assert 0 < len(cut) - used < 40, "only the last one is left"
        desk.feed(publisher, sent[used:])
        assert link.take_flushed() == expected


LONG = b"longer-than-what-a-slot-has-room-for"
APART = [b"l.%d" % number for number in range(12)] + [b"w.1.x", b"w.22.x", b"both", b"nobody", b"l.", b"_INBOX.l"]
APART += [b"w.%b.x" % LONG, b"l.%b" % LONG]
PAYLOADS = [b"", b"x" * 9, b"PUB l.1 1\r\n"]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 0, 0, 0, 0, 7])), min_size=12, max_size=12),
    st.lists(
        st.tuples(st.sampled_from(APART), st.sampled_from(["", "", "", "r.1 ", "_R_.1 "]), st.sampled_from(PAYLOADS)),
        max_size=60,
    ),
    st.sampled_from([PLAIN, QUIET]),
    st.sampled_from([None, Permissions(publish=SubjectRules(deny=("l.3", "l.11", "w.1.x")))]),
)
def test_publishes_to_subjects_with_a_subscription_each_are_delivered_as_if_each_had_arrived_alone(
    receivers: list[tuple[int, int]],
    sent: list[tuple[bytes, str, bytes]],
    connect: bytes,
    permissions: Permissions | None,
) -> None:
    subscriptions = [(which, b"l.%d" % n, b"", maximum) for n, (which, maximum) in enumerate(receivers)]
    subscriptions += [(1, b"w.*.x", b"", 0), (1, b"both", b"", 0), (2, b"both", b"", 0), (3, b"l.%b" % LONG, b"", 0)]
    together, alone = build(subscriptions, connect, permissions), build(subscriptions, connect, permissions)
    ops = [
        b"PUB %b %b%d\r\n%b\r\n" % (subject, reply.encode(), len(payload), payload) for subject, reply, payload in sent
    ]
    for part in (
        ops,
        ops,
        [b"SUB l.3 99\r\n", *ops],
        ops,
        [b"SUB l.* 98\r\n", *ops],
        ops,
        [b"UNSUB 98\r\n", *ops],
        ops,
    ):  # what is known of a subject is used from the second time on
        fed(together[0], together[1][0][0], b"".join(part))
        for op in part:
            fed(alone[0], alone[1][0][0], op)
        assert outcome(*together) == outcome(*alone)


@given(st.lists(SUBSCRIPTION, max_size=6), st.lists(ops(), max_size=10), st.sampled_from([PLAIN, QUIET]))
def test_a_read_after_many_messages_to_a_subscription_each_is_delivered_as_if_each_had_arrived_alone(
    subscriptions: list[tuple[int, bytes, bytes, int]], sent: list[bytes], connect: bytes
) -> None:
    apart = [(1, b"l.%d" % number, b"", 0) for number in range(40)]
    together, alone = build([*subscriptions, *apart], connect), build([*subscriptions, *apart], connect)
    many = [b"PUB l.%d 1\r\nx\r\n" % number for number in range(40)]
    for desk, clients in (together, alone):
        for _ in range(3):
            fed(desk, clients[0][0], b"".join(many))
    fed(together[0], together[1][0][0], b"".join([many[7], *sent, *many]))
    rest = b""
    for op in [many[7], *sent, *many]:
        rest = fed(alone[0], alone[1][0][0], op, rest)
    assert outcome(*together) == outcome(*alone)
    for desk, clients in (together, alone):
        for _ in range(3):
            fed(desk, clients[0][0], b"".join(many))
    fed(together[0], together[1][0][0], b"".join(sent))
    rest = b""
    for op in sent:
        rest = fed(alone[0], alone[1][0][0], op, rest)
    assert outcome(*together) == outcome(*alone)


def test_a_thousand_subjects_with_a_subscription_each_get_their_own_messages_in_order() -> None:
    desk = Desk()
    publisher, (_, link) = desk.connect()[0], (receiver := desk.connect())
    desk.feed(receiver[0], b"".join(b"SUB own.%d %d\r\n" % (number, number) for number in range(1000)))
    order = [number * 7 % 1000 for number in range(3000)]
    desk.feed(publisher, b"".join(b"PUB own.%d 4\r\n%04d\r\n" % (number, number) for number in order))
    assert link.take_flushed() == b"".join(b"MSG own.%d %d 4\r\n%04d\r\n" % (n, n, n) for n in order)
    assert publisher.traffic.messages == 3000
    assert publisher.traffic.bytes == 12_000


def test_of_a_thousand_subjects_those_that_are_denied_are_not_published_on() -> None:
    desk = Desk()
    (publisher, _), (_, link) = desk.connect(), (receiver := desk.connect())
    publisher.membership.guard = Guard(Rules(Permissions(publish=SubjectRules(deny=("own.7", "own.10")))), lambda: 0.0)
    desk.feed(receiver[0], b"".join(b"SUB own.%d %d\r\n" % (number, number) for number in range(1000)))
    for _ in range(3):  # what is known of a subject is used from the second time on
        desk.feed(publisher, b"".join(b"PUB own.%d 4\r\n%04d\r\n" % (number, number) for number in range(1000)))
        allowed = [number for number in range(1000) if number not in (7, 10)]
        assert link.take_flushed() == b"".join(b"MSG own.%d %d 4\r\n%04d\r\n" % (n, n, n) for n in allowed)


def test_what_was_delivered_is_counted_through_every_change_of_interest() -> None:
    desk = Desk()
    publisher, (receiver, link) = desk.connect()[0], desk.connect()
    subjects = [b"own.%d%b" % (number, b"x" * (number % 50)) for number in range(700)]
    desk.feed(receiver, b"".join(b"SUB %b %d\r\n" % (subject, sid) for sid, subject in enumerate(subjects)))
    for turn in range(1, 10):
        for _ in range(2):
            desk.feed(publisher, b"".join(b"PUB %b 1\r\nx\r\n" % subject for subject in subjects[: 100 * turn]))
        desk.feed(receiver, b"SUB other.%d %d\r\n" % (turn, 1000 + turn))
    counted = [desk.router.sublist.delivered(each) for each in receiver.outlet.subscriptions.values()]
    assert counted[:700] == [18 - 2 * (number // 100) for number in range(700)]
    assert link.take_flushed().count(b"MSG ") == sum(counted) == receiver.outlet.out_messages


def test_a_limit_that_is_set_later_counts_what_was_delivered_before_it() -> None:
    desk = Desk()
    publisher, (receiver, link) = desk.connect()[0], desk.connect()
    desk.feed(receiver, b"".join(b"SUB own.%d %d\r\n" % (number, number) for number in range(100)))
    desk.feed(receiver, b"SUB wild.*.x 100\r\n")
    subjects = [b"own.%d" % number for number in range(100)] + [b"wild.%d.x" % number for number in range(3)]
    everything = b"".join(b"PUB %b 1\r\nx\r\n" % subject for subject in subjects)
    for _ in range(5):
        desk.feed(publisher, everything)
    link.take_flushed()
    desk.feed(receiver, b"UNSUB 7 7\r\nUNSUB 8 5\r\nUNSUB 100 17\r\n")
    for _ in range(5):
        desk.feed(publisher, everything)
    got = link.take_flushed()
    assert [got.count(b"MSG own.%d " % number) for number in (6, 7, 8, 9)] == [5, 2, 0, 5]
    assert got.count(b"MSG wild.") == 2


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("publish"), st.integers(0, 60), st.integers(1, 80)),
            st.tuples(st.sampled_from(["subscribe", "unsubscribe"]), st.integers(0, 60), st.integers(0, 3)),
        ),
        min_size=5,
        max_size=60,
    )
)
def test_who_comes_and_goes_beside_many_subjects_gets_what_was_published_meanwhile(
    steps: list[tuple[str, int, int]],
) -> None:
    """Each of many subjects has its own subscription, so that messages are read ahead; the counts tell what came."""
    desk, clients = build([], PLAIN)
    names = [b"many.%d" % number for number in range(64)]
    patterns = [b"many.%d", b"many.%d", b"_INBOX.%d.*", b"*.%d"]
    desk.feed(clients[1][0], b"".join(b"SUB %b %d\r\n" % (name, sid) for sid, name in enumerate(names)))
    others: set[tuple[int, int]] = set()
    wanted: dict[bytes, int] = {}
    for verb, number, detail in steps:
        if verb == "publish":
            batch = [names[(number + each * 7) % 64] for each in range(detail)]
            desk.feed(clients[0][0], b"".join(b"PUB %b 1\r\nx\r\n" % name for name in batch))
            for name in batch:
                index = int(name[5:])
                wanted[b"%d" % index] = wanted.get(b"%d" % index, 0) + 1
                for kind in (0, 1, 3):
                    if (index, kind) in others:
                        their = b"%d" % (1000 * (kind + 1) + index)
                        wanted[their] = wanted.get(their, 0) + 1
            continue
        sid = 1000 * (detail + 1) + number
        if verb == "subscribe" and (number, detail) not in others:
            desk.feed(clients[2][0], b"SUB %b %d\r\n" % (patterns[detail] % number, sid))
            others.add((number, detail))
        elif verb == "unsubscribe" and (number, detail) in others:
            desk.feed(clients[2][0], b"UNSUB %d\r\n" % sid)
            others.discard((number, detail))
    came: dict[bytes, int] = {}
    for _, link in clients[1:]:
        for line in link.take_flushed().split(b"\r\n"):
            if line.startswith(b"MSG "):
                sid_text = line.split(b" ")[2]
                came[sid_text] = came.get(sid_text, 0) + 1
    assert came == wanted
    sublist = clients[1][0].membership.router.sublist
    for subscription in clients[1][0].outlet.subscriptions.values():
        assert sublist.delivered(subscription) == wanted.get(subscription.sid, 0)
