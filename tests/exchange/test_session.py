"""One client's session, op by op, without a socket. The same rules over TCP: test_wire_behaviour."""

import json

import pytest
from support.fake_link import FakeLink
from support.session_desk import PLAIN, Desk

from headwater.authorization.identity import Refusal
from headwater.exchange.session import Session
from headwater.options.access import AccountOptions, AuthorizationOptions
from headwater.wire.handshake import ServerInfo, encode_info
from headwater.wire.receive import START_SIZE


def test_a_client_is_greeted_with_info() -> None:
    desk = Desk()
    session, link = Session(desk.register, desk.router, desk.register.gate), FakeLink()  # type: ignore[arg-type]
    session.attach(link)  # type: ignore[arg-type]
    assert json.loads(link.take_flushed()[5:])["headers"] is True


def test_a_client_above_the_limit_gets_an_error_after_info() -> None:
    desk = Desk()
    desk.register.room = 0
    session, link = Session(desk.register, desk.router, desk.register.gate), FakeLink()  # type: ignore[arg-type]
    session.attach(link)  # type: ignore[arg-type]
    assert link.take_flushed() == encode_info(ServerInfo(headers=True)) + b"-ERR 'maximum connections exceeded'\r\n"
    assert link.closed


@pytest.mark.parametrize(
    ("op", "answer"),
    [
        (b"PING\r\n", b"PONG\r\n"),
        (b"SUB a 1\r\n", b"+OK\r\n"),
        (b"UNSUB 77\r\n", b"+OK\r\n"),
        (b"PUB a 0\r\n\r\n", b"+OK\r\n"),
        (b"HPUB a 12 12\r\nNATS/1.0\r\n\r\n\r\n", b"+OK\r\n"),
        (b"SUB a..b 1\r\n", b"-ERR 'Invalid Subject'\r\n"),
        (b"PUB a.* 0\r\n\r\n", b"-ERR 'Invalid Publish Subject'\r\n+OK\r\n"),
        (b"SUB a 1\r\nPUB a 1\r\nx\r\n", b"+OK\r\n+OK\r\nMSG a 1 1\r\nx\r\n"),
    ],
)
def test_verbose_and_pedantic_answer_as_nats_server_does(op: bytes, answer: bytes) -> None:
    assert Desk().ask(op, b'CONNECT {"headers":true}\r\n') == answer


def test_a_pedantic_error_is_sent_once_and_before_the_payload() -> None:
    desk = Desk()
    session, link = desk.connect(b'CONNECT {"verbose":false}\r\n')
    output = b"PUB a.* 5\r\nhello\r\nPUB a..b 1\r\nx\r\n"
    line = len(b"PUB a.* 5\r\n")
    for filled in (line, line + 2):
        assert session.receive(bytearray(output), filled) == 0
    assert link.take_flushed() == b"-ERR 'Invalid Publish Subject'\r\n"
    desk.feed(session, output)
    assert link.take_flushed() == b"-ERR 'Invalid Publish Subject'\r\n"  # for the second op


def test_a_client_that_skips_connect_is_verbose_and_has_no_headers() -> None:
    assert Desk().ask(b"PING\r\nSUB a 1\r\n", b"") == b"PONG\r\n+OK\r\n"
    assert Desk().ask(b"HPUB a 12 12\r\nNATS/1.0\r\n\r\n\r\n", b"") == b""


@pytest.mark.parametrize(
    ("connect", "answer"),
    [
        (b"CONNECT []\r\n", b""),
        (b"CONNECT\r\n", b""),
        (b'CONNECT {"verbose":"yes"}\r\n', b""),
        (b'CONNECT {"protocol":2}\r\n', b"-ERR 'invalid client protocol'\r\n"),
        (b'CONNECT {"no_responders":true}\r\n', b"-ERR 'no responders requires headers support'\r\n"),
        (b'CONNECT {"account":"A"}\r\n', b"-ERR 'Authorization Violation'\r\n"),
        (b"-ERR 'x'\r\n", b""),
        (b"INFO {\r\n", b""),
        (b"FROB\r\n", b"-ERR 'Unknown Protocol Operation'\r\n"),
        (b"PUB a 99999999\r\n", b"-ERR 'Maximum Payload Violation'\r\n"),
        (b"SUB " + b"a" * 5000, b"-ERR 'maximum control line exceeded'\r\n"),
        (b"PUB a\r\n", b""),
    ],
)
def test_these_end_the_connection(connect: bytes, answer: bytes) -> None:
    desk = Desk()
    session, link = desk.connect(b"")
    desk.feed(session, connect + b"PING\r\n")
    assert link.take_flushed() == answer
    assert link.closed


@pytest.mark.parametrize("op", [b"+OK\r\n", b"PONG\r\n", b"INFO {}\r\n"])
def test_these_are_ignored(op: bytes) -> None:
    assert Desk().ask(op + b"PING\r\n").startswith(b"PONG\r\n")


def test_info_with_connect_info_follows_the_first_pong_only() -> None:
    output = Desk().ask(b"PING\r\nPING\r\n")
    assert output.startswith(b"PONG\r\nINFO {")
    assert b'"connect_info":true' in output
    assert output.endswith(b" \r\nPONG\r\n")
    assert Desk().ask(b"PING\r\n", b'CONNECT {"verbose":false,"protocol":0}\r\n') == b"PONG\r\n"


def test_a_second_connect_drops_the_subscriptions() -> None:
    desk = Desk()
    session, link = desk.connect()
    desk.feed(session, b"SUB a 1\r\n" + PLAIN + b"PUB a 0\r\n\r\n")
    assert link.take_flushed() == b""
    assert not desk.router.has_interest(b"a")


def test_a_sid_in_use_keeps_its_first_subject() -> None:
    assert Desk().ask(b"SUB a 1\r\nSUB b 1\r\nPUB b 0\r\n\r\nPUB a 0\r\n\r\n") == b"MSG a 1 0\r\n\r\n"


def test_the_reserved_queue_is_refused() -> None:
    expected = b'-ERR \'Permissions Violation for Subscription to "foo" using queue "_sys_"\'\r\n'
    assert Desk().ask(b"SUB foo _sys_ 1\r\n") == expected


def test_unsub_with_max_counts_all_deliveries_since_sub() -> None:
    publish = b"PUB a 0\r\n\r\n"
    assert Desk().ask(b"SUB a 1\r\nUNSUB 1 2\r\n" + 3 * publish).count(b"MSG") == 2
    assert Desk().ask(b"SUB a 1\r\n" + 2 * publish + b"UNSUB 1 2\r\n" + publish).count(b"MSG") == 2
    assert Desk().ask(b"SUB a 1\r\nUNSUB 1 1\r\nUNSUB 1 3\r\n" + 4 * publish).count(b"MSG") == 3
    assert Desk().ask(b"SUB a 1\r\nUNSUB 1 3\r\nUNSUB 1\r\n" + publish).count(b"MSG") == 0


def test_subscriptions_beyond_the_limit_are_refused_and_the_connection_stays() -> None:
    desk = Desk(max_subscriptions=1)
    expected = b"-ERR 'maximum subscriptions exceeded'\r\nPONG\r\n"
    assert desk.ask(b"SUB a 1\r\nSUB b 2\r\nPING\r\n").startswith(expected)


def test_a_request_without_a_receiver_gets_status_503() -> None:
    block = b"NATS/1.0 503\r\nNats-Subject: nobody\r\n\r\n"
    expected = b"HMSG r.1 5 %d %d\r\n%b\r\n" % (len(block), len(block), block)
    assert Desk().ask(b"SUB r.* 5\r\nPUB nobody r.1 0\r\n\r\n") == expected
    # A queue subscription to the reply subject does not count. Without a subscription or without a reply subject there
    # is no status.
    assert Desk().ask(b"SUB r.1 q 5\r\nPUB nobody r.1 0\r\n\r\n") == b""
    assert Desk().ask(b"PUB nobody r.1 0\r\n\r\nPUB nobody 0\r\n\r\n") == b""


def test_with_echo_off_a_request_with_only_the_requesters_own_subscription_has_no_responders() -> None:
    connect = PLAIN.replace(b'"verbose"', b'"echo":false,"verbose"')
    assert b"503" in Desk().ask(b"SUB r 1\r\nSUB a 2\r\nPUB a r 0\r\n\r\n", connect)


def test_a_503_does_not_count_for_unsub_max() -> None:
    output = Desk().ask(b"SUB r 1\r\nUNSUB 1 1\r\n" + 3 * b"PUB nobody r 0\r\n\r\n")
    assert output.count(b"503") == 3


def test_the_round_trip_is_estimated_at_connect_and_measured_by_the_first_pong() -> None:
    session, _ = Desk().connect()
    assert session.heartbeat.round_trip > 0
    session.heartbeat.sent(1.0)
    session.heartbeat.answered(1.5)
    assert session.heartbeat.round_trip == 0.5


def test_a_client_that_owes_too_many_pongs_is_stale() -> None:
    desk = Desk()
    session, link = desk.connect()
    for _ in range(2):
        session.ping(2, 1.0)
    session.ping(2, 1.0)
    link.flush()
    assert link.take_flushed() == b"PING\r\nPING\r\n-ERR 'Stale Connection'\r\n"
    assert link.closed


def test_any_sign_of_life_pays_for_the_pongs() -> None:
    desk = Desk()
    session, link = desk.connect()
    session.ping(1, 1.0)
    desk.feed(session, b"PUB a 0\r\n\r\n")
    session.ping(1, 1.0)
    assert not link.closed


def test_the_interest_of_a_lost_client_is_removed() -> None:
    desk = Desk()
    session, _ = desk.connect()
    desk.feed(session, b"SUB a 1\r\nSUB b q 2\r\n")
    session.lost(None)
    assert not desk.router.has_interest(b"a")
    assert not desk.router.has_interest(b"b")
    assert desk.register.forgotten == [session]


HASHED = AuthorizationOptions(username="u", password="$2a$04$nmHDbNSnNOqu/2k8sPwce.PiN.oqvA6WgWGMEQGY.6ttInesGZpBe")
SLOW_CONNECT = b'CONNECT {"verbose":false,"pedantic":false,"user":"u","pass":"s3cr3t-Pa55"}\r\n'


def ask_slowly(output: bytes) -> tuple[Desk, Session, FakeLink, int]:
    """A session that has received CONNECT and `output`, and waits for the verdict; and the number of bytes it has used."""
    desk = Desk(authorization=HASHED)
    session, link = Session(desk.register, desk.router, desk.register.gate), FakeLink()  # type: ignore[arg-type]
    session.attach(link)  # type: ignore[arg-type]
    link.take_flushed()
    data = SLOW_CONNECT + output
    return desk, session, link, session.receive(bytearray(data), len(data))


def test_no_input_is_read_while_a_verdict_is_awaited() -> None:
    desk, session, link, used = ask_slowly(b"PING\r\n")
    assert used == len(SLOW_CONNECT)
    assert not link.reading
    assert session.receive(bytearray(b"PING\r\n"), 6) == 0
    (check,) = desk.register.checks
    session.late_verdict(check.decide())
    assert link.reading
    assert link.read_again == 1
    desk.feed(session, b"PING\r\n")
    assert link.take_flushed() == b"PONG\r\n"


def test_a_late_refusal_ends_the_connection() -> None:
    desk, session, link, _ = ask_slowly(b"")
    session.late_verdict(Refusal("wrong"))
    assert link.take_flushed() == b"-ERR 'Authorization Violation'\r\n"
    assert link.closed
    assert desk.register.accounts["$G"].connections == 0


@pytest.mark.parametrize("ended_by", ["the timer", "the client"])
def test_a_verdict_that_arrives_too_late_has_no_effect(ended_by: str) -> None:
    desk, session, link, _ = ask_slowly(b"")
    if ended_by == "the timer":
        session.expire("Authentication Timeout")
        assert link.take_flushed() == b"-ERR 'Authentication Timeout'\r\n"
    else:
        session.lost(None)
    (check,) = desk.register.checks
    session.late_verdict(check.decide())
    assert link.take_flushed() == b""
    assert desk.register.accounts["$G"].connections == 0


@pytest.mark.parametrize(("payload", "large"), [(16, False), (600, False), (60_000, False), (100_000, True)])
def test_messages_above_64_kib_that_fill_the_reads_of_a_client_are_large(payload: int, large: bool) -> None:
    desk = Desk()
    session, link = desk.connect()
    listener, _ = desk.connect()
    desk.feed(listener, b"SUB a 1\r\n")
    op = b"PUB a %d\r\n%b\r\n" % (payload, bytes(payload))
    several = op * (START_SIZE // len(op) + 1)
    link.reads_large = not large
    session.receive(bytearray(several), len(several))
    assert (link.reads_large, link.reads_unheard) == (large, False)
    session.receive(bytearray(op), len(op))
    assert link.reads_large is large, "a read that was not full says nothing"


@pytest.mark.parametrize(
    ("payload", "large", "unheard"),
    [(400, False, False), (600, False, True), (60_000, False, True), (100_000, True, True)],
)
def test_more_is_read_at_once_of_messages_of_some_size_that_nobody_listens_to(
    payload: int, large: bool, unheard: bool
) -> None:
    session, link = Desk().connect()
    op = b"PUB a %d\r\n%b\r\n" % (payload, bytes(payload))
    several = op * (START_SIZE // len(op) + 1)
    link.reads_large = not large
    session.receive(bytearray(several), len(several))
    assert (link.reads_large, link.reads_unheard) == (large, unheard)


def test_a_link_is_shown_the_size_of_a_large_publish_as_soon_as_that_is_known() -> None:
    session, link = Desk().connect()
    op = b"PUB a %d\r\n%b\r\n" % (2 * START_SIZE, bytes(2 * START_SIZE))
    assert session.receive(bytearray(op[:START_SIZE]), START_SIZE) == 0
    assert link.op_size == len(op)
    assert session.receive(bytearray(op), len(op)) == len(op)
    assert link.op_size == 0


def test_each_of_many_messages_to_a_reserved_subject_is_refused() -> None:
    refusal = b"-ERR 'Permissions Violation for Publish to \"_GR_.x\"'\r\n"
    assert Desk().ask(b"SUB > 1\r\n" + 3 * b"PUB _GR_.x 2\r\nhi\r\n") == 3 * refusal


def test_each_reply_subject_is_judged_when_several_messages_arrive_at_once() -> None:
    answer = Desk().ask(b"SUB a 1\r\nSUB b 2\r\n" + b"PUB a 0\r\n\r\nPUB b _R_.1 0\r\n\r\n")
    assert b"-ERR 'Permissions Violation for Publish with Reply of \"_R_.1\"'\r\n" in answer
    assert b"MSG b" not in answer


def test_a_client_of_a_full_account_is_no_member() -> None:
    desk = Desk(authorization=AuthorizationOptions(username="a", password="p"))
    account = desk.register.accounts["$G"]
    account.use(AccountOptions(name="A", max_connections=1))
    connect = b'CONNECT {"verbose":false,"user":"a","pass":"p"}\r\n'
    first, _ = desk.connect(connect)
    second, link = desk.connect(connect)
    assert desk.register.members == [first]
    assert (account.connections, link.closed, second.login.accepted) == (1, True, False)
