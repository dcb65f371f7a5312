"""Every captured frame of ten client versions decodes, and is written again byte for byte."""

import pytest
from support.iggy_frames import ERAS, Exchange, exchanges

from headwater.iggy_wire import classic_codec, classic_frames, command_codec, reply_codec, seed_codec, vsr_frames
from headwater.iggy_wire.batches import admit, messages, xxh3_64
from headwater.iggy_wire.commands import Code, Login
from headwater.iggy_wire.eras import Era, of_login
from headwater.iggy_wire.layout import U32, Reader
from headwater.streams.iggy_batch import BATCH_HEADER_SIZE

CLASSIC = [client for client, era in ERAS.items() if era is not Era.V]
MODERN = "apache-iggy_0.9.0"


def parameters(clients: list[str]) -> list[object]:
    return [
        pytest.param(client, exchange, id=f"{client}-{number}-{exchange.code}")
        for client in clients
        for number, exchange in enumerate(exchanges(client))
    ]


def poll_of_classic(body: bytes, era: Era) -> bytes:
    """The answer decoded and written again."""
    if era < Era.C1:
        reader = Reader(body)
        partition, current = U32.read(reader), int.from_bytes(reader.take(8), "little")
        written_again = bytearray(seed_codec.encode_poll(seed_codec.decode_poll(body, era), era, partition, current))
        at = 16  # the test server that was captured left the CRC of each payload zero
        while at < len(body):
            written_again[at + 33 : at + 37] = bytes(4)
            at += 45 + int.from_bytes(body[at + 41 : at + 45], "little")
        return bytes(written_again)
    prefix = classic_codec.PREFIX
    partition, current, count = prefix.unpack_from(body)
    reader, head = Reader(body, prefix.size), classic_codec.head_of(era)
    written = [prefix.pack(partition, current, count)]
    for _ in range(count):
        fields = head.unpack(reader.take(head.size))
        written += [head.pack(*fields), reader.take(fields[6]), reader.take(fields[5])]
    reader.finish()
    return b"".join(written)


@pytest.mark.parametrize(("client", "exchange"), parameters(CLASSIC))
def test_a_classic_exchange_is_read_and_written_again(client: str, exchange: Exchange) -> None:
    era = ERAS[client]
    found = classic_frames.find_request(exchange.request, 0, len(exchange.request))
    assert isinstance(found, classic_frames.Request)
    assert (found.code, found.end) == (exchange.code, len(exchange.request))
    body = exchange.request[found.start : found.end]
    status, size = classic_frames.HEAD.unpack_from(exchange.reply)
    answer = exchange.reply[classic_frames.HEAD.size :]
    assert size == len(answer)
    assert classic_frames.response(status, answer) == exchange.reply
    if exchange.code == Code.SEND_MESSAGES:
        written = send_again(body, era)
    else:
        command = command_codec.decode(exchange.code, body, era)
        code, written = command_codec.encode(command, era)
        assert code == exchange.code
        if exchange.code == Code.POLL_MESSAGES:
            assert poll_of_classic(answer, era) == answer
        else:
            view = reply_codec.decode(exchange.code, answer, era)
            assert reply_codec.encode(exchange.code, view, era) == answer
    assert classic_frames.request(exchange.code, written) == exchange.request


def send_again(body: bytes, era: Era) -> bytes:
    if era < Era.C1:
        send = seed_codec.SendMessages.decode(body)
        assert [message.payload for message in send.messages][1:] in ([b"world"], [b"0|world"])
        return send.encode()
    reader = Reader(body)
    address = classic_codec.read_address(reader)
    rest = body[reader.at :]
    parts = classic_codec.read_messages(reader, address.count, era)
    assert [part.payload for part in parts] == [b"hello", b"world"]
    return classic_codec.write_address(address) + rest


@pytest.mark.parametrize("client", CLASSIC)
def test_the_login_tells_the_era(client: str) -> None:
    request = next(exchange.request for exchange in exchanges(client) if exchange.code == Code.LOGIN_USER)
    login = command_codec.decode_classic_login(request[8:])
    assert (login.username, login.password) == ("iggy", "iggy")
    reported = of_login(login.version)
    assert reported is (Era.A2 if ERAS[client] is Era.A else ERAS[client])


@pytest.mark.parametrize(("client", "exchange"), parameters([MODERN]))
def test_a_modern_exchange_is_read_and_written_again(client: str, exchange: Exchange) -> None:
    found = vsr_frames.find_request(exchange.request, 0, len(exchange.request))
    assert isinstance(found, vsr_frames.Request)
    body = exchange.request[found.start : found.end]
    code = Code(found.code or command_codec.OPERATIONS.get(found.operation, Code.LOGIN_REGISTER))
    assert code == exchange.code
    assert request_again(found, code, body) + body == exchange.request
    reply = vsr_frames.find_reply(exchange.reply, 0, len(exchange.reply))
    assert isinstance(reply, vsr_frames.Reply) and reply.status == 0
    answer = exchange.reply[reply.start : reply.end]
    op = int.from_bytes(exchange.reply[176:184], "little")
    assert vsr_frames.reply(found, op, len(answer)) + answer == exchange.reply
    if vsr_frames.has_result_section(found.operation):
        assert answer[:4] == bytes(4)
        answer = answer[4:]
    if code is Code.POLL_MESSAGES:
        list(messages(answer[classic_codec.PREFIX.size :]))
    elif code is Code.SEND_MESSAGES:
        reader = Reader(body)
        address = classic_codec.read_address(reader)
        assert classic_codec.write_address(address) == body[: reader.at]
        admit(bytearray(body), reader.at, len(body), address.count, verify=True)
    else:
        command = command_codec.decode_login(body) if exchange.code == 40 else command_codec.decode(code, body, Era.V)
        assert command_codec.encode(command, Era.V) == (code, body)
    view = reply_codec.decode(code, answer, Era.V) if code is not Code.POLL_MESSAGES else None
    assert code is Code.POLL_MESSAGES or reply_codec.encode(code, view, Era.V) == answer


def request_again(found: vsr_frames.Request, code: Code, body: bytes) -> bytes:
    checksum = int.from_bytes(found.checksum, "little")
    return vsr_frames.request(code, len(body), found.client, found.number, found.login, checksum)


def test_the_request_checksum_is_the_hash_of_the_body_where_it_is_one() -> None:
    for exchange in exchanges(MODERN):
        body = exchange.request[256:]
        sent = int.from_bytes(exchange.request[144:160], "little")
        assert sent == (xxh3_64(body) if vsr_frames.needs_checksum(Code(exchange.code)) else 0)


def test_headers_of_the_captured_send_are_typed() -> None:
    send = next(exchange for exchange in exchanges(MODERN) if exchange.code == Code.SEND_MESSAGES)
    reader = Reader(send.request, 256)
    classic_codec.read_address(reader)
    first = next(messages(reader.rest()))
    assert first.headers is not None
    assert first.headers.to_python() == {"Key-2": True, "key 1": "value1", "key_3": 123456}
    assert first.payload == b"hello-world"
    assert BATCH_HEADER_SIZE == 256


def test_a_version_that_is_none_of_ours_is_refused() -> None:
    with pytest.raises(Exception, match="incompatible_protocol_version"):
        of_login("1.0.0")
    assert isinstance(command_codec.decode_classic_login(b"\4iggy\4iggy"), Login)
