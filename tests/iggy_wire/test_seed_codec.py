import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.header_strategies import typed_headers

from headwater import TypedHeaders
from headwater.errors import HeaderError, IggyError
from headwater.iggy_wire.command_codec import decode, encode
from headwater.iggy_wire.commands import Code, Message, PollMessages
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import of_header_error, refusal, seed_number
from headwater.iggy_wire.identifiers import Consumer, Identifier, Partitioning, PollingStrategy
from headwater.iggy_wire.layout import Reader
from headwater.iggy_wire.seed_codec import SendMessages, decode_messages, decode_poll, encode_poll

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "iggy_seed.json").read_text(encoding="utf-8"))["other"]
HELLO = Message(b"hello-world")
TYPED = Message(b"world", TypedHeaders({"key_1": "value 1"}), id=7)


def send(partitioning: Partitioning, *messages: Message) -> SendMessages:
    return SendMessages(Identifier(1), Identifier("sample"), partitioning, messages)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("SEND balanced nohdr", send(Partitioning.balanced(), HELLO)),
        (
            "SEND pid1 hdr",
            send(Partitioning.partition(1), Message(b"hello-world", TypedHeaders({"key 1": "value1"}), id=7)),
        ),
        ("SEND pid1 two msgs", send(Partitioning.partition(1), Message(b"hello"), TYPED)),
        ("SEND empty map hdr", send(Partitioning.balanced(), Message(b"x"))),
    ],
)
def test_a_send_is_written_and_read_as_upstream_did(name: str, command: SendMessages) -> None:
    assert command.encode().hex() == VECTORS[name]
    assert SendMessages.decode(bytes.fromhex(VECTORS[name])) == command


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("ID num1", Identifier(1).encode()),
        ("ID named", Identifier("sample").encode()),
        ("PART balanced", Partitioning.balanced().encode()),
        ("PART pid1", Partitioning.partition(1).encode()),
        ("PART key", Partitioning.key("key-1").encode()),
        ("PART key_u64", Partitioning.key(7).encode()),
    ],
)
def test_an_address_is_written_as_upstream_did(name: str, written: bytes) -> None:
    assert written.hex() == VECTORS[name]
    read = (Identifier if name.startswith("ID") else Partitioning).read(Reader(written))
    assert read.encode() == written


@pytest.mark.parametrize(
    ("name", "consumer", "strategy", "auto"),
    [
        ("POLL", Consumer.single(1), PollingStrategy.offset(0), False),
        ("POLL group next", Consumer.group(1), PollingStrategy.next(), True),
    ],
)
def test_a_poll_is_written_and_read_as_upstream_did(
    name: str, consumer: Consumer, strategy: PollingStrategy, auto: bool
) -> None:
    poll = PollMessages(consumer, Identifier(1), Identifier("sample"), 1, strategy, 10, auto)
    assert encode(poll, Era.S) == (Code.POLL_MESSAGES, bytes.fromhex(VECTORS[name]))
    assert decode(Code.POLL_MESSAGES, bytes.fromhex(VECTORS[name]), Era.S) == poll


def test_the_answers_to_a_poll_are_as_upstream_wrote_them() -> None:
    start = 1692525600000000
    messages = [
        Message(b"hello", offset=0, timestamp=start),
        Message(b"world", TYPED.headers, id=7, offset=1, timestamp=start + 1),
    ]
    assert encode_poll(messages).hex() == VECTORS["POLL RESPONSE (2 msgs)"]
    assert decode_poll(bytes.fromhex(VECTORS["POLL RESPONSE (2 msgs)"])) == messages
    assert encode_poll([]).hex() == VECTORS["POLL RESPONSE (empty)"]


messages = st.builds(
    Message,
    st.binary(min_size=1, max_size=30),
    typed_headers().map(lambda headers: headers or None),
    st.integers(0, 2**128 - 1),
)


@given(st.lists(messages, min_size=1, max_size=4))
def test_what_is_sent_is_what_is_read(sent: list[Message]) -> None:
    command = send(Partitioning.key("k"), *sent)
    assert SendMessages.decode(command.encode()) == command


@given(st.lists(messages, max_size=4), st.sampled_from([Era.S, Era.A, Era.B]))
def test_what_is_answered_is_what_is_read(polled: list[Message], era: Era) -> None:
    assert decode_poll(encode_poll(polled, era), era) == polled


@given(st.binary(max_size=120), st.sampled_from([Era.S, Era.B]))
def test_any_bytes_decode_or_are_refused(data: bytes, era: Era) -> None:
    for read in (SendMessages.decode, lambda raw: decode_poll(raw, era)):
        try:
            read(data)
        except (IggyError, HeaderError):
            continue


def limit_of(*sent: Message) -> str:
    body = SendMessages(Identifier(1), Identifier(1), Partitioning.balanced(), sent).encode()[14:]
    try:
        decode_messages(Reader(body))
    except IggyError as error:
        return error.name
    except HeaderError as error:
        return of_header_error(error).name
    return "taken"


def test_the_limits_are_those_of_the_seeds_source() -> None:
    def headers(count: int) -> TypedHeaders:
        return TypedHeaders({f"k{number}": "v" * 255 for number in range(count)})

    assert limit_of(Message(b"x", headers(401))) == "taken"
    assert limit_of(Message(b"x", headers(402))) == "too_big_user_headers"
    assert limit_of(Message(b"x", headers(201)), Message(b"x", headers(201))) == "too_big_user_headers"
    assert limit_of(Message(b"")) == "empty_message_payload"
    assert limit_of(Message(b""), Message(b"x")) == "taken"
    assert limit_of() == "invalid_messages_count"
    assert limit_of(Message(bytes(10 * 1024 * 1024))) == "taken"
    assert limit_of(Message(bytes(10 * 1024 * 1024)), Message(b"x")) == "too_big_message_payload"


def test_the_numbers_of_errors_are_those_of_the_seed_for_the_seed_and_of_today_for_today() -> None:
    names = {"too_big_user_headers": (4017, 4016), "invalid_header_key": (4018, 4017)}
    names |= {"empty_message_payload": (4024, 4023), "invalid_header_kind": (4040, 3), "unauthenticated": (40, 1)}
    for name, (today, seed) in names.items():
        error = refusal(name, "why")
        assert (error.number, seed_number(error)) == (today, seed)
