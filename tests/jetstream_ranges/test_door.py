"""A range as stored batches: an answer holds all that is kept of what it says it covers, however the stream came to be."""

import asyncio
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.jetstream_in_process import Desk, served

from headwater.columns.range_answer import ANSWER_HEAD, AnswerHead, decode_head
from headwater.columns.stored_columns import StoredDecoder
from headwater.jetstream_ranges import door
from headwater.wire.message_view import composed

ASK = "$JS.API.HEADWATER.RANGE.S"
BLOCK = b"NATS/1.0\r\nk: v\r\n\r\n"


async def answer(desk: Desk, seq: int, end: int, max_bytes: int = 1 << 20) -> tuple[AnswerHead, bytes]:
    request = json.dumps({"seq": seq, "end": end, "max_bytes": max_bytes}).encode()
    payload = (await desk.ask(ASK, request)).payload
    head = decode_head(payload)
    assert head is not None, payload
    return head, payload


async def refused(desk: Desk, payload: bytes, stream: str = "S") -> tuple[int, int]:
    document = json.loads((await desk.ask(f"$JS.API.HEADWATER.RANGE.{stream}", payload)).payload)
    assert document["type"] == "io.nats.jetstream.api.v1.headwater_range_response"
    return document["error"]["code"], document["error"]["err_code"]


async def read(desk: Desk, seq: int, end: int, max_bytes: int) -> list[tuple[int, bytes, bytes, bytes]]:
    """All rows of `[seq, end)`, by as many requests as it takes."""
    decoder = StoredDecoder(seq, end, with_map=False, with_raw=True)
    decoder.listen(1, lambda head: head.requested == decoder.position + 1)
    while not decoder.complete:
        head, payload = await answer(desk, decoder.position + 1, end, max_bytes)
        if head.next == head.requested:
            break
        message = composed(b"inbox", b"", b"", payload)
        message.sid = 1
        decoder.on_message(message)
        assert decoder.violation is None
        assert decoder.position == max(head.next - 1, 0)
    columns = decoder.take()
    blocks = columns.blocks
    assert blocks is not None
    texts = [
        [bytes(text.data[a:b]) for a, b in zip(text.offsets, text.offsets[1:], strict=False)]
        for text in (columns.subjects, blocks, columns.payloads)
    ]
    return list(zip(columns.sequences, *texts, strict=True))


def test_an_answer_says_what_it_covers_and_where_the_stream_begins_and_ends(tmp_path: Path) -> None:
    async def main() -> None:
        clock = [1_700_000_000_000_000_000]
        async with served(tmp_path, clock) as desk:
            await desk.make("S")
            for number in range(5):
                await desk.publish("S.a", b"%d" % number, BLOCK)
            assert "stored_batches" not in await desk.api("STREAM.INFO.S")  # as from nats-server
            info = await desk.ask("$JS.API.STREAM.INFO.S", b"", b"NATS/1.0\r\nHeadwater-Range: 1\r\n\r\n")
            assert json.loads(info.payload)["stored_batches"] == 1
            head, payload = await answer(desk, 2, 5)
            assert head == AnswerHead(head.batches, clock[0], 2, 5, 1, 6)
            assert head.batches >= 1
            assert len(payload) > ANSWER_HEAD.size
            assert (await answer(desk, 6, 9))[0] == AnswerHead(0, clock[0], 6, 6, 1, 6)
            assert (await answer(desk, 4, 9))[0].next == 6
            await desk.api("STREAM.PURGE.S", {"seq": 4})
            assert (await answer(desk, 1, 3))[0].first == 4

    asyncio.run(main())


def test_deleted_and_purged_messages_are_not_sent_and_are_covered(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            await asyncio.gather(*(desk.publish(f"S.{number}", b"m%d" % number, BLOCK) for number in range(1, 21)))
            await desk.api("STREAM.PURGE.S", {"seq": 4})
            for sequence in (7, 8, 20):
                await desk.api("STREAM.MSG.DELETE.S", {"seq": sequence})
            kept = [sequence for sequence in range(4, 20) if sequence not in (7, 8)]
            for max_bytes in (1, 200, 1 << 20):
                rows = await read(desk, 1, 21, max_bytes)
                assert [row[0] for row in rows] == kept
                assert {row[2] for row in rows} == {BLOCK}
                assert all(payload == b"m" + subject[2:] for _, subject, _, payload in rows)

    asyncio.run(main())


@settings(max_examples=15)
@given(
    sizes=st.lists(st.integers(0, 3000), min_size=1, max_size=30),
    deleted=st.sets(st.integers(1, 30), max_size=8),
    edges=st.tuples(st.integers(1, 32), st.integers(1, 32)),
    max_bytes=st.sampled_from([1, 1000, 5000, 1 << 20]),
)
def test_any_range_gives_the_messages_that_a_get_of_each_gives(
    tmp_path_factory: Any, sizes: list[int], deleted: set[int], edges: tuple[int, int], max_bytes: int
) -> None:
    async def main() -> None:
        async with served(tmp_path_factory.mktemp("range")) as desk:
            await desk.make("S", storage="memory")
            payloads = {at: bytes([at]) * size for at, size in enumerate(sizes, 1)}
            for at, payload in payloads.items():
                await desk.publish(f"S.{at}", payload)
            for sequence in sorted(deleted & payloads.keys()):
                await desk.api("STREAM.MSG.DELETE.S", {"seq": sequence})
            start, end = min(edges), max(edges)
            wanted = [
                (at, b"S.%d" % at, b"", payload)
                for at, payload in payloads.items()
                if start <= at < end and at not in deleted
            ]
            assert await read(desk, start, end, max_bytes) == wanted

    asyncio.run(main())


def test_what_cannot_be_answered_is_refused_like_other_requests(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            assert await refused(desk, b"{}", "NONE") == (404, 10059)
            assert (await refused(desk, b'{"seq":-1}'))[0] == 400
            assert (await refused(desk, b"{no"))[0] == 400
            assert desk.service.refusals == 3

    asyncio.run(main())


def test_a_batch_larger_than_an_answer_is_cut_between_its_records(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as desk:
            await desk.make("S")
            body = bytes(100_000)
            await asyncio.gather(*(desk.publish("S.a", body) for _ in range(20)))
            head, payload = await answer(desk, 1, 21, door.MOST_BYTES)
            assert head.next < 21  # no client of ours: other brokers would have to carry it
            assert len(payload) < door.PASSED_ON_BYTES + len(body)
            assert [row[0] for row in await read(desk, 1, 21, door.MOST_BYTES)] == list(range(1, 21))

    asyncio.run(main())
