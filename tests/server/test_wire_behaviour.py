"""What a NATS server does on the wire, byte for byte: handshake, parser and headers.

Every test runs twice: the real server proves that the expectation is true, ours that it is met. The order follows the
feature tables of NATS; subjects and subscriptions are in test_wire_subscriptions.py. Only what the broker is built to do
stands here; auth, TLS and WebSocket have tests of their own. A row that closes the connection, and a few that do not,
are hostile: after each of them a fresh client still publishes and subscribes.
"""

import json
import re

import pytest
from support.headwater_server import HeadwaterServer
from support.nats_server import NatsServer
from support.raw_wire import (
    VIOLATION,
    RawLink,
    Row,
    closed,
    connect_op,
    dial,
    prove_service,
    read_info,
    still_open,
    titles,
)

Server = HeadwaterServer | NatsServer

pytestmark = pytest.mark.interop

MAX_PAYLOAD = 1024 * 1024
MAX_CONTROL_LINE = 4096


# --- handshake -------------------------------------------------------------------------------------------------------


def test_info_is_the_first_line_and_ends_in_a_space_before_crlf(server: Server) -> None:
    with RawLink(server.port) as link:
        info = read_info(link.greeting)
    assert re.fullmatch(r"N[A-Z2-7]{55}", info["server_id"])
    assert info["server_name"]
    assert re.match(r"2\.\d+\.\d+", info["version"]), "clients gate features on the version of nats-server"
    assert info["proto"] == 1
    assert info["headers"] is True
    assert info["max_payload"] == MAX_PAYLOAD
    assert info["host"] == "127.0.0.1"
    assert info["port"] == server.port
    assert info["client_ip"] == "127.0.0.1"
    assert info["git_commit"]
    assert info["go"]
    assert info["api_lvl"] >= 0
    assert "xkey" in info


def test_info_leaves_out_what_is_not_in_use(server: Server) -> None:
    with RawLink(server.port) as link:
        info = read_info(link.greeting)
    absent = {
        "auth_required",
        "tls_required",
        "tls_verify",
        "tls_available",
        "jetstream",
        "nonce",
        "ldm",
        "connect_urls",
    }
    assert absent.isdisjoint(info)


def test_every_connection_gets_a_client_id_of_its_own(server: Server) -> None:
    with RawLink(server.port) as first, RawLink(server.port) as second:
        assert read_info(second.greeting)["client_id"] > read_info(first.greeting)["client_id"]


ACCEPTED_CONNECTS = [
    Row("quiet", connect_op(), b""),
    Row("verbose says +OK", connect_op(verbose=True), b"+OK\r\n"),
    Row("an empty object means verbose", b"CONNECT {}\r\n", b"+OK\r\n"),
    Row("null counts as an empty object", b"CONNECT null\r\n", b"+OK\r\n"),
    Row("unknown fields are ignored", b'CONNECT {"verbose":false,"colour":"red","deep":[[{}]]}\r\n', b""),
    Row("keys are matched without regard to case", b'CONNECT {"Verbose":false,"PEDANTIC":false}\r\n', b""),
    Row("of two equal keys the last wins", b'CONNECT {"verbose":true,"verbose":false}\r\n', b""),
    Row("the object may follow the verb without a space", b'CONNECT{"verbose":false}\r\n', b""),
    Row("the verb may be lower case", b'connect {"verbose":false}\r\n', b""),
    Row("a bare line feed ends the line", b'CONNECT {"verbose":false}\n', b""),
    Row("tls_required is ignored by a plain server", connect_op(tls_required=True), b""),
    Row("white space inside and around the object", b'CONNECT   { "verbose" : false }  \r\n', b""),
    Row("nested unknown fields", b'CONNECT {"verbose":false,"x":' + b"[" * 500 + b"]" * 500 + b"}\r\n", b""),
    Row("null leaves a field at its default", b'CONNECT {"verbose":null,"name":null}\r\n', b"+OK\r\n"),
    Row("bytes that are not UTF-8", b'CONNECT {"verbose":false,"name":"\xff\xfe"}\r\n', b""),
]


@pytest.mark.parametrize("row", ACCEPTED_CONNECTS, ids=titles)
def test_connect_is_accepted(server: Server, row: Row) -> None:
    with RawLink(server.port) as link:
        assert link.answer(row.sent) == still_open(row.received)


REFUSED_CONNECTS = [
    Row("no argument", b"CONNECT\r\n", b""),
    Row("not JSON", b"CONNECT nonsense\r\n", b""),
    Row("an array", b"CONNECT []\r\n", b""),
    Row("a string", b'CONNECT "x"\r\n', b""),
    Row("a number", b"CONNECT 1\r\n", b""),
    Row("a wrong type", b'CONNECT {"verbose":"yes"}\r\n', b""),
    Row("a name that is a number", b'CONNECT {"name":7}\r\n', b""),
    Row("NaN", b'CONNECT {"protocol":NaN}\r\n', b""),
    Row("a number too large for any type", b'CONNECT {"protocol":1e999}\r\n', b""),
    Row("rubbish after the object", b"CONNECT {} x\r\n", b""),
    Row("a protocol that does not exist", connect_op(protocol=99), b"-ERR 'invalid client protocol'\r\n"),
    Row("a negative protocol", connect_op(protocol=-1), b"-ERR 'invalid client protocol'\r\n"),
    Row(
        "no_responders without headers",
        connect_op(headers=False, no_responders=True),
        b"-ERR 'no responders requires headers support'\r\n",
    ),
    Row("an account", connect_op(account="A"), b"-ERR 'Authorization Violation'\r\n"),
]


@pytest.mark.parametrize("row", REFUSED_CONNECTS, ids=titles)
def test_connect_is_refused_and_the_connection_closed(server: Server, row: Row) -> None:
    with RawLink(server.port) as link:
        assert link.answer(row.sent) == closed(row.received)
    prove_service(server.port)


@pytest.mark.parametrize("name", ["x", "verbose"])
def test_connect_may_nest_as_deep_as_the_line_is_long(server: Server, name: str) -> None:
    nested = b'"%b":%b"[{}]"%b' % (name.encode(), b"[" * 1500, b"]" * 1500)
    with RawLink(server.port) as link:
        answer = link.answer(b'CONNECT {"verbose":false,' + nested + b"}\r\n")
    assert answer == (still_open() if name == "x" else closed())
    with RawLink(server.port) as link:
        assert link.answer(b'CONNECT {"verbose":false,"x":' + b"[" * 1500 + b"}" * 1500 + b"}\r\n") == closed()
    prove_service(server.port)


def test_before_connect_a_client_is_verbose_and_pedantic(server: Server) -> None:
    with RawLink(server.port) as link:
        assert link.answer(b"SUB a.> 1\r\n") == still_open(b"+OK\r\n")
        assert link.answer(b"PUB a.b 1\r\nx\r\n") == still_open(b"+OK\r\nMSG a.b 1 1\r\nx\r\n")
        refused = still_open(b"-ERR 'Invalid Publish Subject'\r\n+OK\r\nMSG a.* 1 1\r\nx\r\n")
        assert link.answer(b"PUB a.* 1\r\nx\r\n") == refused


def test_a_second_connect_drops_the_subscriptions(server: Server) -> None:
    with dial(server.port) as link:
        link.send(b"SUB foo 1\r\n" + connect_op(name="again") + b"PUB foo 1\r\nx\r\n")
        assert link.settle() == b""


def test_a_client_of_protocol_1_gets_one_more_info_after_its_first_pong(server: Server) -> None:
    with RawLink(server.port) as link:
        link.send(connect_op(protocol=1) + b"PING\r\n")
        assert link.receive_line() == b"PONG\r\n"
        info = read_info(link.receive_line())
        assert info["connect_info"] is True
        assert info["remote_account"] == "$G"
        assert info["client_id"] == read_info(link.greeting)["client_id"]
        assert link.settle() == b"", "only the first PONG is followed by an INFO"


def test_ping_is_answered_before_connect(server: Server) -> None:
    with RawLink(server.port) as link:
        assert link.answer(b"") == still_open(b"")


def test_ten_thousand_pings_in_one_write_get_ten_thousand_pongs(server: Server) -> None:
    with dial(server.port) as link:
        link.send(b"PING\r\n" * 10_000)
        assert link.receive(6 * 10_000) == b"PONG\r\n" * 10_000
        assert link.settle() == b""


VERBOSE = [
    Row("SUB", b"SUB foo 1\r\n", b"+OK\r\n"),
    Row("SUB of a sid in use", b"SUB foo 1\r\nSUB bar 1\r\n", b"+OK\r\n+OK\r\n"),
    Row("UNSUB of an unknown sid", b"UNSUB 77\r\n", b"+OK\r\n"),
    Row("PUB", b"PUB foo 2\r\nhi\r\n", b"+OK\r\n"),
    Row("HPUB", b"HPUB foo 12 14\r\nNATS/1.0\r\n\r\nhi\r\n", b"+OK\r\n"),
    Row(
        "+OK comes before the MSG that the op causes",
        b"SUB f 1\r\nPUB f 1\r\nx\r\n",
        b"+OK\r\n+OK\r\nMSG f 1 1\r\nx\r\n",
    ),
    Row("PING has no +OK", b"PONG\r\n", b""),
    Row("a refused SUB has no +OK", b"SUB foo. 1\r\n", b"-ERR 'Invalid Subject'\r\n"),
]


@pytest.mark.parametrize("row", VERBOSE, ids=titles)
def test_verbose_says_ok(server: Server, row: Row) -> None:
    with dial(server.port, verbose=True) as link:
        assert link.answer(row.sent) == still_open(row.received)


@pytest.mark.parametrize("subject", [b"foo.*", b"foo.>", b"foo..bar", b".foo", b"foo.", b"*", b">"])
def test_pedantic_complains_of_a_publish_subject_and_stays_open(server: Server, subject: bytes) -> None:
    with dial(server.port, pedantic=True) as link:
        answer = link.answer(b"PUB " + subject + b" 1\r\nx\r\n")
    assert answer == still_open(b"-ERR 'Invalid Publish Subject'\r\n")


def test_the_pedantic_complaint_does_not_wait_for_the_payload(server: Server) -> None:
    with dial(server.port, pedantic=True) as link:
        link.send(b"PUB foo.* 5\r\n")
        assert link.receive_line() == b"-ERR 'Invalid Publish Subject'\r\n"
        assert set(link.answer(b"hello\r\n").output.splitlines()) <= {
            b"-ERR 'Invalid Publish Subject'"
        }  # nats-server's second


def test_the_pedantic_complaint_comes_also_when_the_payload_is_torn(server: Server) -> None:
    with dial(server.port, pedantic=True) as link:
        answer = link.answer(b"PUB foo.* 5\r\nhello, no end")
    assert answer == closed(b"-ERR 'Invalid Publish Subject'\r\n", VIOLATION)


@pytest.mark.parametrize("subject", [b"foo.*", b"foo..bar", b".foo", b"foo."])
def test_without_pedantic_any_publish_subject_is_accepted_in_silence(server: Server, subject: bytes) -> None:
    with dial(server.port) as link:
        assert link.answer(b"PUB " + subject + b" 1\r\nx\r\n") == still_open()


def test_without_echo_a_client_never_hears_itself(server: Server) -> None:
    with dial(server.port, echo=False) as link, dial(server.port) as other:
        other.send(b"SUB foo 5\r\n")
        assert other.settle() == b""
        link.send(b"SUB foo 1\r\nSUB foo group 2\r\nPUB foo 1\r\nx\r\n")
        assert link.settle() == b""
        assert other.settle() == b"MSG foo 5 1\r\nx\r\n"


# --- parser ----------------------------------------------------------------------------------------------------------

TOLERATED = [
    Row("lower case", b"sub foo 1\r\npub foo 1\r\nx\r\n", b"MSG foo 1 1\r\nx\r\n"),
    Row("mixed case", b"SuB foo 1\r\npUb foo 1\r\nx\r\n", b"MSG foo 1 1\r\nx\r\n"),
    Row("bare line feeds", b"SUB foo 1\nPUB foo 1\nx\r\n", b"MSG foo 1 1\r\nx\r\n"),
    Row("tabs and many spaces", b"SUB \t foo \t\t 1  \r\nPUB   foo\t1\t\r\nx\r\n", b"MSG foo 1 1\r\nx\r\n"),
    Row("white space before a bare line feed", b"SUB f 1\r\nPUB f 1 \t\nx\r\n", b"MSG f 1 1\r\nx\r\n"),
    Row("a second carriage return after SUB", b"SUB f 1\r\r\nPUB f 1\r\nx\r\n", b"MSG f 1 1\r\nx\r\n"),
    Row("a carriage return within a publish subject", b"SUB > 1\r\nPUB a\rb 1\r\nx\r\n", b"MSG a\rb 1 1\r\nx\r\n"),
    Row("a lone carriage return costs the line its last byte", b"SUB f 1\rx\nPUB f 1\r\nx\r\n", b"MSG f 1 1\r\nx\r\n"),
    Row("the same in UNSUB", b"SUB f 10\r\nUNSUB 10 2\r,\nPUB f 1\r\nx\r\n", b"MSG f 10 1\r\nx\r\n"),
    Row("the same in PUB", b"SUB > 1\r\nPUB a\rb 17\nx\r\n", b"MSG a\rb 1 1\r\nx\r\n"),
    Row(
        "leading zeros of a header size are echoed, whatever the blanks",
        b"SUB h 1\r\nHPUB h\t012\t14\r\nNATS/1.0\r\n\r\nhi\r\nHPUB h  r  0012 014\r\nNATS/1.0\r\n\r\nhi\r\n",
        b"HMSG h 1 012 14\r\nNATS/1.0\r\n\r\nhi\r\nHMSG h 1 r 0012 014\r\nNATS/1.0\r\n\r\nhi\r\n",
    ),
    Row("PONG that nobody asked for", b"PONG\r\n", b""),
    Row("+OK from a client", b"+OK\r\n", b""),
    Row("INFO from a client", b"INFO {}\r\n", b""),
    Row("leading zeros of a size are echoed", b"SUB f 1\r\nPUB f 00000002\r\nhi\r\n", b"MSG f 1 00000002\r\nhi\r\n"),
    Row("an empty payload", b"SUB f 1\r\nPUB f 0\r\n\r\n", b"MSG f 1 0\r\n\r\n"),
    Row("a payload of CRLFs", b"SUB f 1\r\nPUB f 4\r\n\r\n\r\n\r\n", b"MSG f 1 4\r\n\r\n\r\n\r\n"),
    Row("a reply subject", b"SUB f 1\r\nPUB f r.1 1\r\nx\r\n", b"MSG f 1 r.1 1\r\nx\r\n"),
    Row("a reply subject behind tabs", b"SUB f 1\r\nPUB f\t\tr.1  1\r\nx\r\n", b"MSG f 1 r.1 1\r\nx\r\n"),
    Row(
        "NUL, control and high bytes in a subject",
        b"SUB \x00\x01\xff 1\r\nPUB \x00\x01\xff 1\r\nx\r\n",
        b"MSG \x00\x01\xff 1 1\r\nx\r\n",
    ),
]


@pytest.mark.parametrize("row", TOLERATED, ids=titles)
def test_parser_accepts(server: Server, row: Row) -> None:
    with dial(server.port) as link:
        assert link.answer(row.sent) == still_open(row.received)


def test_ping_with_an_argument_is_answered(server: Server) -> None:
    with dial(server.port) as link:
        link.send(b"PING x\r\n")
        assert link.receive_line() == b"PONG\r\n"
        assert link.settle() == b""


UNKNOWN_OPERATIONS = [
    Row("an unknown verb", b"FOO\r\n", VIOLATION),
    Row("a wrong letter, with no line end yet", b"PUX", VIOLATION),
    Row("an empty line", b"\r\n", VIOLATION),
    Row("a leading space", b" SUB foo 1\r\n", VIOLATION),
    Row("SUB without arguments", b"SUB\r\n", VIOLATION),
    Row("PUB without arguments", b"PUB\r\n", VIOLATION),
    Row("UNSUB without arguments", b"UNSUB\r\n", VIOLATION),
    Row("a payload longer than stated", b"PUB foo 1\r\nxy\r\n", VIOLATION),
    Row("a payload ended by a line feed only", b"PUB foo 1\r\nx\n", VIOLATION),
    Row("a payload with no end", b"PUB foo 1\r\nxPUB foo 1\r\n", VIOLATION),
    Row("MSG from a client", b"MSG foo 1 1\r\nx\r\n", VIOLATION),
    Row("HMSG from a client", b"HMSG foo 1 12 12\r\nNATS/1.0\r\n\r\n\r\n", VIOLATION),
    Row("RMSG from a client", b"RMSG $G foo 1\r\nx\r\n", VIOLATION),
    Row("RS+ from a client", b"RS+ $G foo\r\n", VIOLATION),
    Row("LMSG from a client", b"LMSG foo 1\r\nx\r\n", VIOLATION),
    Row("LS+ from a client", b"LS+ foo\r\n", VIOLATION),
    Row("A+ from a client", b"A+ $G\r\n", VIOLATION),
    Row("HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", VIOLATION),
    Row("a TLS hello", bytes.fromhex("16030100c5010000c10303") + bytes(190), VIOLATION),
    Row("an SSH banner", b"SSH-2.0-OpenSSH_9.6\r\n", VIOLATION),
    Row("a byte order mark", b"\xef\xbb\xbfPING\r\n", VIOLATION),
    Row("zeros", bytes(100), VIOLATION),
    Row("SUBX", b"SUBX foo 1\r\n", VIOLATION),
]


@pytest.mark.parametrize("row", UNKNOWN_OPERATIONS, ids=titles)
def test_unknown_operation_is_named_and_the_connection_closed(server: Server, row: Row) -> None:
    with dial(server.port) as link:
        assert link.answer(row.sent) == closed(row.received)
    prove_service(server.port)


SILENT_CLOSINGS = [
    Row("PUB with a subject only", b"PUB foo\r\n", b""),
    Row("PUB with four arguments", b"PUB foo bar 1 2\r\nx\r\n", b""),
    Row("SUB with a subject only", b"SUB foo\r\n", b""),
    Row("SUB with four arguments", b"SUB a b c d\r\n", b""),
    Row("UNSUB with three arguments", b"UNSUB 1 2 3\r\n", b""),
    Row("a size of letters", b"PUB foo xx\r\n", b""),
    Row("a negative size", b"PUB foo -1\r\n", b""),
    Row("a size with a plus", b"PUB foo +1\r\nx\r\n", b""),
    Row("a hexadecimal size", b"PUB foo 0x1\r\nx\r\n", b""),
    Row("a size with a fraction", b"PUB foo 1.0\r\nx\r\n", b""),
    Row("a size of more than nine digits", b"PUB foo 1234567890\r\n", b""),
    Row("a size that overflows 64 bits", b"PUB foo 18446744073709551617\r\n", b""),
    Row("a size in Arabic digits", "PUB foo ١\r\nx\r\n".encode(), b""),
    Row("a second carriage return after a size", b"PUB foo 1\r\r\nx\r\n", b""),
    Row("a second carriage return after a header size", b"HPUB foo 12 12\r\r\nNATS/1.0\r\n\r\n\r\n", b""),
    Row("HPUB with a header size above the total", b"HPUB foo 20 12\r\nNATS/1.0\r\n\r\n\r\n", b""),
    Row("HPUB with a negative header size", b"HPUB foo -1 12\r\nNATS/1.0\r\n\r\n\r\n", b""),
    Row("HPUB with one size", b"HPUB foo 12\r\nNATS/1.0\r\n\r\n\r\n", b""),
    Row("HPUB with five arguments", b"HPUB foo bar 12 12 12\r\nNATS/1.0\r\n\r\n\r\n", b""),
    Row("-ERR from a client", b"-ERR 'x'\r\n", b""),
    Row("INFO of rubbish", b"INFO x\r\n", b""),
]


@pytest.mark.parametrize("row", SILENT_CLOSINGS, ids=titles)
def test_wrong_arguments_close_the_connection_without_a_word(server: Server, row: Row) -> None:
    with dial(server.port) as link:
        assert link.answer(row.sent) == closed(row.received)
    prove_service(server.port)


def test_hpub_of_a_client_that_did_not_say_headers_closes_without_a_word(server: Server) -> None:
    with dial(server.port, headers=False) as link:
        assert link.answer(b"HPUB foo 12 14\r\nNATS/1.0\r\n\r\nhi\r\n") == closed()
    prove_service(server.port)


CONTROL_LINE_ERROR = b"-ERR 'maximum control line exceeded'\r\n"
TOO_LONG = [
    Row("SUB", b"SUB " + b"a" * MAX_CONTROL_LINE + b" 1\r\n", CONTROL_LINE_ERROR),
    Row("PUB", b"PUB " + b"a" * MAX_CONTROL_LINE + b" 1\r\nx\r\n", CONTROL_LINE_ERROR),
    Row("CONNECT", b'CONNECT {"name":"' + b"a" * MAX_CONTROL_LINE + b'"}\r\n', CONTROL_LINE_ERROR),
    Row("UNSUB with no line end yet", b"UNSUB " + b"7" * 3 * MAX_CONTROL_LINE, CONTROL_LINE_ERROR),
    Row("SUB with no line end yet", b"SUB " + b"a" * 3 * MAX_CONTROL_LINE, CONTROL_LINE_ERROR),
]


@pytest.mark.parametrize("row", TOO_LONG, ids=titles)
def test_a_control_line_above_the_limit_is_refused(server: Server, row: Row) -> None:
    with dial(server.port) as link:
        assert link.answer(row.sent) == closed(row.received)
    prove_service(server.port)


def test_a_control_line_at_the_limit_is_accepted(server: Server) -> None:
    with dial(server.port) as link:
        subject = b"a" * (MAX_CONTROL_LINE - len(b" 1"))
        assert link.answer(b"SUB " + subject + b" 1\r\n") == still_open()


def test_a_control_line_at_the_limit_may_be_cut_within_its_end(server: Server) -> None:
    with dial(server.port) as link:
        subject = b"a" * (MAX_CONTROL_LINE - len(b" 1"))
        link.send(b"PING\r\nSUB " + subject + b" 1\r")
        assert link.receive_line() == b"PONG\r\n"
        assert link.answer(b"\n") == still_open()


def test_a_payload_at_the_limit_is_delivered_whole(server: Server) -> None:
    payload = bytes(range(256)) * (MAX_PAYLOAD // 256)
    with dial(server.port) as link:
        link.send(b"SUB big 1\r\nPUB big %d\r\n" % MAX_PAYLOAD + payload + b"\r\n")
        assert link.settle() == b"MSG big 1 %d\r\n" % MAX_PAYLOAD + payload + b"\r\n"


@pytest.mark.parametrize("size", [MAX_PAYLOAD + 1, 999_999_999])
def test_a_payload_above_the_limit_is_refused_before_it_comes(server: Server, size: int) -> None:
    with dial(server.port) as link:
        link.send(b"PUB foo %d\r\n" % size)
        assert link.receive_end() == b"-ERR 'Maximum Payload Violation'\r\n"
    with dial(server.port) as link:
        link.send(b"HPUB foo 12 %d\r\n" % size)
        assert link.receive_end() == b"-ERR 'Maximum Payload Violation'\r\n"
    prove_service(server.port)


def test_a_payload_shorter_than_stated_swallows_what_follows(server: Server) -> None:
    with dial(server.port) as link:
        link.send(b"SUB foo 1\r\nPUB foo 9\r\nabcd\r\nPING\r\n")
        assert link.receive_end() == VIOLATION
    with dial(server.port) as link:
        link.send(b"SUB foo 1\r\nPUB foo 10\r\nabcd\r\nPING\r\n")
        assert link.settle() == b"MSG foo 1 10\r\nabcd\r\nPING\r\n"


def test_an_op_that_comes_byte_by_byte_is_understood(server: Server) -> None:
    ops = b"SUB a.* q 7\r\nHPUB a.b r 17 19\r\nNATS/1.0\r\nA:1\r\n\r\nhi\r\nPUB a.c 00\r\n\r\n"
    with dial(server.port) as link:
        link.send_in_pieces(ops, range(1, len(ops)))
        assert link.settle() == b"HMSG a.b 7 r 17 19\r\nNATS/1.0\r\nA:1\r\n\r\nhi\r\nMSG a.c 7 00\r\n\r\n"


def test_what_was_said_before_the_end_of_the_stream_is_done(server: Server) -> None:
    with dial(server.port) as link, dial(server.port) as other:
        other.send(b"SUB last 1\r\n")
        assert other.settle() == b""
        link.send(b"PUB last 5\r\nwords\r\nPING\r\nPUB last 5\r\ncut")
        link.end_sending()
        assert link.receive_end() == b"PONG\r\n"
        assert other.settle() == b"MSG last 1 5\r\nwords\r\n"


def test_garbage_on_one_link_disturbs_no_other(server: Server) -> None:
    with dial(server.port) as good:
        good.send(b"SUB good 1\r\n")
        assert good.settle() == b""
        for row in UNKNOWN_OPERATIONS:
            with RawLink(server.port) as bad:
                bad.send(row.sent)
            good.send(b"PUB good 1\r\nx\r\n")
            assert good.settle() == b"MSG good 1 1\r\nx\r\n"


# --- headers ---------------------------------------------------------------------------------------------------------

BLOCKS = [
    b"NATS/1.0\r\n\r\n",
    b"NATS/1.0\r\nA: 1\r\nA: 2\r\na:3\r\n\r\n",
    b"NATS/1.0 503 sorry\r\n\r\n",
    b"no version line",
    b"\x00\xff\r\n",
    b"NATS/1.0\r\nno colon\r\n\r\n",
    b"NATS/1.0\r\nA: split in the mid",
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_header_block_is_passed_on_as_it_is(server: Server, block: bytes) -> None:
    sizes = b"%d %d\r\n" % (len(block), len(block) + 2)
    with dial(server.port) as link:
        link.send(b"SUB h 1\r\nHPUB h " + sizes + block + b"hi\r\nHPUB h answer.to " + sizes + block + b"hi\r\n")
        expected = b"HMSG h 1 " + sizes + block + b"hi\r\nHMSG h 1 answer.to " + sizes + block + b"hi\r\n"
        assert link.settle() == expected


def test_a_header_size_of_zero_is_delivered_as_msg(server: Server) -> None:
    with dial(server.port) as link:
        link.send(b"SUB h 1\r\nHPUB h 0 2\r\nhi\r\n")
        assert link.settle() == b"MSG h 1 2\r\nhi\r\n"


def test_a_subscriber_without_headers_gets_the_payload_alone(server: Server) -> None:
    block = b"NATS/1.0\r\nA: 1\r\n\r\n"
    with dial(server.port) as publisher, dial(server.port, headers=False) as old:
        old.send(b"SUB h 1\r\n")
        assert old.settle() == b""
        publisher.send(b"HPUB h back %d %d\r\n" % (len(block), len(block) + 2) + block + b"hi\r\n")
        assert publisher.settle() == b""
        assert old.settle() == b"MSG h 1 back 2\r\nhi\r\n"


def test_connect_json_with_a_password_is_not_repeated(server: Server) -> None:
    with RawLink(server.port) as link:
        link.send(b'CONNECT {"user":"u","pass":"hunter2","verbose":7}\r\n')
        assert b"hunter2" not in link.receive_end()
        assert json.loads(link.greeting[5:])["proto"] == 1
