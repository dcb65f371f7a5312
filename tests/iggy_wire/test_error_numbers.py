"""Every rejection over the wire with its number: that of the seed for the seed's clients, that of today for today's."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headwater import HeaderValue, TypedHeaders
from headwater.errors import HeaderError, IggyError, StorageError
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy_client.client import Client, connect
from headwater.iggy_wire import classic_codec, classic_frames, command_codec
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.batches import of_messages
from headwater.iggy_wire.commands import Code, Command, Message, Permissions
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.error_numbers import NUMBERS, SEED_NUMBERS, as_refusal, of_number, refusal, seed_number
from headwater.iggy_wire.identifiers import Consumer, Identifier, Partitioning, PollingStrategy
from headwater.iggy_wire.seed_codec import SendMessages
from headwater.model.typed_headers import HeaderForm
from headwater.streams.iggy_batch import BATCH_HEADER_SIZE

ANY = ("127.0.0.1", 0)
ONE, NINE, NOPE = Identifier(1), Identifier(9), Identifier("nope")
ADDRESS = ONE.encode() * 2
BY_TURNS = Partitioning.balanced().encode()
RAW = SendMessages(ONE, ONE, Partitioning.balanced(), (Message(b"x", TypedHeaders({"k": "v"})),)).encode()
KEY_AT = RAW.index(b"\1\0\0\0k")


def seed_send(*messages: Message, topic: Identifier = ONE, where: Partitioning | None = None) -> tuple[int, bytes]:
    return Code.SEND_MESSAGES, SendMessages(ONE, topic, where or Partitioning.balanced(), messages).encode()


def seed(command: Command) -> tuple[int, bytes]:
    return command_codec.encode(command, Era.S)


def poll(partition: int) -> Command:
    return c.PollMessages(Consumer.single(1), ONE, ONE, partition, PollingStrategy.first(), 1, False)


OF_THE_SEED: dict[str, tuple[int, tuple[int, bytes]]] = {
    "an unknown command": (3, (9999, b"")),
    "a login, which the seed has not": (3, (Code.LOGIN_USER, b"\4iggy\4iggy")),
    "a request that is cut off": (3, (Code.SEND_MESSAGES, RAW[:-3])),
    "an unknown strategy": (
        3,
        (Code.POLL_MESSAGES, b"\1\1\0\0\0" + ADDRESS + struct.pack("<IBQIB", 1, 9, 0, 1, 0)),
    ),
    "a kind of header that is none": (3, (Code.SEND_MESSAGES, RAW[: KEY_AT + 5] + b"\x10" + RAW[KEY_AT + 6 :])),
    "kill": (5, (Code.KILL, b"")),
    "a client that is not there": (100, seed(c.GetClient(77))),
    "a stream id that is not there": (1009, seed(c.GetStream(NINE))),
    "a stream name that is not there": (1010, seed(c.GetStream(NOPE))),
    "a stream id that is taken": (1011, seed(c.CreateStream("other", id=1))),
    "a stream name that is taken": (1012, seed(c.CreateStream("s", id=2))),
    "a stream name with a star": (1013, seed(c.CreateStream("a*b", id=2))),
    "a stream without a name": (1013, seed(c.CreateStream("", id=2))),
    "a stream without an id": (1014, seed(c.CreateStream("zero", id=0))),
    "a topic id that is not there": (2010, seed(c.GetTopic(ONE, NINE))),
    "a topic name that is not there": (2011, seed(c.DeleteTopic(ONE, NOPE))),
    "a topic id that is taken": (2012, seed(c.CreateTopic(ONE, "other", 1, id=1))),
    "a topic name that is taken": (2013, seed(c.CreateTopic(ONE, "t", 1, id=3))),
    "a topic name with a star": (2014, seed(c.CreateTopic(ONE, "a*b", 1, id=3))),
    "too many partitions": (2015, seed(c.CreateTopic(ONE, "other", 100_001, id=3))),
    "a topic without an id": (2016, seed(c.CreateTopic(ONE, "zero", 1, id=0))),
    "a poll of a partition that is not there": (3007, seed(poll(9))),
    "a send to a partition that is not there": (3007, seed_send(Message(b"x"), where=Partitioning.partition(9))),
    "more partitions deleted than there are": (3007, seed(c.DeletePartitions(ONE, ONE, 9))),
    "a send to a topic without partitions": (3008, seed_send(Message(b"x"), topic=Identifier(2))),
    "a send of nothing": (4009, seed_send()),
    "headers of more than 100 KiB": (
        4016,
        seed_send(*[Message(b"x", TypedHeaders({f"k{n}": "v" * 255 for n in range(201)}))] * 2),
    ),
    "a key without bytes": (4017, (Code.SEND_MESSAGES, RAW[:KEY_AT] + b"\0" + RAW[KEY_AT + 1 :])),
    "a value without bytes": (4018, (Code.SEND_MESSAGES, RAW[: KEY_AT + 6] + b"\0" + RAW[KEY_AT + 7 :])),
    "more than 10 MiB": (4021, seed_send(Message(bytes((10 << 20) + 1)))),
    "a message without a payload": (4023, seed_send(Message(b""))),
    "a messages key without bytes": (4027, (Code.SEND_MESSAGES, ADDRESS + b"\3\0" + RAW[len(ADDRESS) + 2 :])),
    "an offset that nothing has": (4100, seed(c.StoreOffset(Consumer.single(1), ONE, ONE, 1, 99))),
    "a group that is not there": (5000, seed(c.GetGroup(ONE, ONE, NINE))),
    "a group id that is taken": (5001, seed(c.CreateGroup(ONE, ONE, "", id=1))),
    "a group without an id": (5002, seed(c.CreateGroup(ONE, ONE, "", id=0))),
    "leaving a group without being in it": (5003, seed(c.LeaveGroup(ONE, ONE, ONE))),
}


def serving(tmp_path: Path, work: Callable[[Iggy], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), Iggy(IggyOptions(tcp=ANY, seed=ANY), tmp_path) as iggy:
            await work(iggy)

    asyncio.run(main())


def test_the_seeds_clients_hear_the_seeds_numbers_and_the_partition_is_as_before(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", iggy.seed_port)

        async def ask(code: int, body: bytes) -> tuple[int, bytes]:
            writer.write(classic_frames.request(code, body))
            status, size = classic_frames.HEAD.unpack(await reader.readexactly(8))
            return status, await reader.readexactly(size)

        made = c.CreateStream("s", id=1), c.CreateTopic(ONE, "t", 1, id=1), c.CreateTopic(ONE, "none", 0, id=2)
        for command in (*made, c.CreateGroup(ONE, ONE, "", id=1)):
            assert (await ask(*seed(command)))[0] == 0
        assert await ask(*seed_send(Message(b"before"))) == (0, b"")
        for what, (number, request) in OF_THE_SEED.items():
            assert (what, await ask(*request)) == (what, (number, b""))
        assert await ask(*seed_send(Message(b"after"))) == (0, b"")
        status, body = await ask(*seed(poll(1)))
        assert status == 0 and body.endswith(b"before")
        status, body = await ask(
            *seed(c.PollMessages(Consumer.single(1), ONE, ONE, 1, PollingStrategy.offset(0), 10, False))
        )
        assert status == 0 and body[:4] == b"\2\0\0\0" and body.endswith(b"after")
        writer.close()

    serving(tmp_path, work)


S, T = Identifier("s"), Identifier("t")
BATCH = bytes(of_messages([Message(b"payload", TypedHeaders({"key": "value"})), Message(b"two")], 1)[0])
FIRST, SECOND = BATCH_HEADER_SIZE, BATCH_HEADER_SIZE + 48 + 7 + 18
BLOCK = FIRST + 48 + 7


def changed(at: int, new: bytes) -> bytes:
    return BATCH[:at] + new + BATCH[at + len(new) :]


def shortened(body: bytes) -> bytes:
    """With the length in the header that it has."""
    return body[:32] + len(body).to_bytes(8, "little") + body[40:]


def options(**values: HeaderValue) -> bytes:
    return TypedHeaders(values.items()).encode(HeaderForm.TYPED)


BATCHES: dict[str, tuple[int, int, bytes]] = {
    "a length that is not the batch's": (4036, 2, changed(32, (len(BATCH) + 1).to_bytes(8, "little"))),
    "no whole batch header": (4036, 2, BATCH[:255]),
    "a count that is not the request's": (4009, 3, BATCH),
    "no messages": (4009, 0, changed(48, bytes(4))),
    "more messages than fit": (4009, 1 << 30, changed(48, (1 << 30).to_bytes(4, "little"))),
    "more frames than said": (4009, 1, changed(48, b"\1\0\0\0")),
    "a frame that is cut off": (4036, 2, shortened(BATCH[:-1])),
    "a frame that goes beyond the end": (4036, 2, changed(SECOND + 36, b"\xff\xff\xff\xff")),
    "offsets that do not count from 0": (4100, 2, changed(SECOND + 24, b"\7")),
    "reserved bytes that are not zero": (4101, 2, changed(SECOND + 40, b"\1")),
    "a key without bytes": (4018, 2, changed(BLOCK + 1, b"\0")),
    "a key that is no text": (4018, 2, changed(BLOCK + 5, b"\xff")),
    "a kind that is none": (4040, 2, changed(BLOCK + 8, b"\x10")),
    "a value without bytes": (4019, 2, changed(BLOCK + 9, b"\0")),
    "a value beyond its block": (4019, 2, changed(BLOCK + 9, b"\xff")),
}

COMMANDS: dict[str, tuple[int, Command]] = {
    "a stream id that is not there": (1009, c.DeleteStream(NINE)),
    "a stream name that is not there": (1009, c.PurgeStream(NOPE)),
    "a stream name that is taken": (1012, c.CreateStream("s")),
    "a topic id that is not there": (2010, c.DeleteTopic(S, NINE)),
    "a topic name that is not there": (2010, c.PurgeTopic(S, NOPE)),
    "a topic name that is taken": (2013, c.CreateTopic(S, "t", 1)),
    "too many partitions": (2015, c.CreateTopic(S, "many", 100_001)),
    "an option that is not known": (
        4041,
        c.CreateTopic(S, "o", 1, options=options(colour=HeaderValue.from_str("red"))),
    ),
    "an option that cannot be": (
        4042,
        c.CreateTopic(S, "o", 1, options=options(segment_size=HeaderValue.from_uint64(1))),
    ),
    "options that are none": (4042, c.CreateTopic(S, "o", 1, options=b"\2\1")),
    "a poll of a partition that is not there": (
        3007,
        c.PollMessages(Consumer.single(1), S, T, 9, PollingStrategy.first(), 1, False),
    ),
    "an offset that nothing has": (4100, c.StoreOffset(Consumer.single(1), S, T, 0, 99)),
    "an offset that was not stored": (3021, c.DeleteOffset(Consumer.single(1), S, T, 0)),
    "a group id that is not there": (5000, c.DeleteGroup(S, T, NINE)),
    "a group name that is not there": (5000, c.JoinGroup(S, T, NOPE)),
    "a group name that is taken": (5004, c.CreateGroup(S, T, "g")),
    "leaving a group without being in it": (5006, c.LeaveGroup(S, T, Identifier("g"))),
    "a user name that is too short": (43, c.CreateUser("ab", "secret", 1, None)),
    "a password that is too short": (44, c.CreateUser("alice", "ab", 1, None)),
    "a status that is none": (45, c.CreateUser("alice", "secret", 7, None)),
    "a user name that is taken": (46, c.CreateUser("iggy", "secret", 1, None)),
    "deleting the root user": (48, c.DeleteUser(Identifier("iggy"))),
    "permissions of the root user": (49, c.UpdatePermissions(Identifier("iggy"), Permissions())),
    "a wrong current password": (42, c.ChangePassword(Identifier("iggy"), "wrong", "secret")),
    "a token name that is too short": (50, c.CreateToken("ab", 0)),
    "kill": (5, c.Kill()),
}


def test_todays_clients_hear_todays_numbers_and_the_partition_is_as_before(tmp_path: Path) -> None:
    async def refused(wanted: Awaitable[object]) -> int:
        with pytest.raises(IggyError) as caught:
            await wanted
        return caught.value.number

    async def send(client: Client, count: int, batch: bytes, where: Partitioning | None = None) -> bytes:
        address = classic_codec.write_address(c.SendMessages(S, T, where or Partitioning.partition(0), count))
        return await client.request(Code.SEND_MESSAGES, address, batch)

    async def work(iggy: Iggy) -> None:
        async with await connect(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}") as client:
            await client.create_stream("s")
            await client.create_topic("s", "t")
            await client.create_group("s", "t", "g")
            await client.send("s", "t", [Message(b"before")], 0)
            for what, (number, count, batch) in BATCHES.items():
                assert (what, await refused(send(client, count, batch))) == (what, number)
            for what, (number, command) in COMMANDS.items():
                assert (what, await refused(client.execute(command))) == (what, number)
            assert await refused(send(client, 2, BATCH, Partitioning.partition(9))) == 20
            empty = bytes(of_messages([Message(b"x")], 1)[0])
            empty = shortened(empty[:-1][: BATCH_HEADER_SIZE + 36] + bytes(4) + empty[BATCH_HEADER_SIZE + 40 : -1])
            assert await refused(send(client, 1, empty)) == 4024
            assert await refused(client.request(Code.SEND_MESSAGES, b"\xff\0\0\0")) == 3
            await send(client, 2, BATCH)
            found = await client.poll("s", "t", strategy=PollingStrategy.first())
            assert [(message.offset, message.payload) for message in found] == [
                (0, b"before"),
                (1, b"payload"),
                (2, b"two"),
            ]

    serving(tmp_path, work)


def test_a_name_has_one_number_in_each_table() -> None:
    assert len(set(NUMBERS.values())) == len(NUMBERS)
    assert len(set(SEED_NUMBERS.values())) == len(SEED_NUMBERS)
    for name, number in NUMBERS.items():
        assert (of_number(number).name, refusal(name, "why").number) == (name, number)
    assert of_number(60_000).name == "error"


def test_every_error_of_ours_is_one_of_iggys() -> None:
    assert as_refusal(StorageError("x")).number == NUMBERS["cannot_append_message"]
    with pytest.raises(HeaderError) as caught:
        TypedHeaders.decode(b"\1\0\0\0k\x10\1\0\0\0v", HeaderForm.SEED)
    assert (as_refusal(caught.value).number, seed_number(as_refusal(caught.value))) == (4040, 3)
    assert seed_number(refusal("unauthenticated", "not in the seed")) == 1
