"""Long looks at a stream: the same as at once, with turns of the loop in between, and right while the stream changes."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.jetstream_in_process import Desk, served

from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_state import contents as contents_module
from headwater.jetstream_state.contents import Contents
from headwater.jetstream_state.memory_files import MemoryFiles
from headwater.jetstream_state.subject_table import SubjectFilter
from headwater.jetstream_timing import looking, purging
from headwater.streams.log import Log, LogOptions

T = TypeVar("T")
SUBJECTS = st.sampled_from([b"a", b"a.b", b"a.c", b"b.a", b"b.b", b"b.c.d"])
PATTERNS = st.sampled_from([b">", b"a", b"a.*", b"*.b", b"b.>", b"zz", b"zz.*"])


def held(subjects: list[bytes], history: int = -1) -> Contents:
    """Contents of a stream in memory that holds a message on each of these, at most `history` of a subject."""
    log = Log.open(MemoryFiles(bytes), "x", LogOptions(sync="never", preallocate_bytes=0, cache_bytes=0), 0)
    contents = Contents(
        log, StreamConfig(name="S", max_msgs_per_subject=history), lambda sequence, subject: None, lambda: None
    )
    add(contents, subjects)
    return contents


def finish(steps: Generator[None, None, int]) -> int:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return int(end.value)


def add(contents: Contents, subjects: list[bytes]) -> None:
    for subject in subjects:
        contents.log.stage(subject, b"", b"", 1)
    batch = contents.log.seal()
    if batch is not None:
        contents.log.write(batch)
        contents.log.publish(batch)
    for record in contents.scan(contents.log.end_offset - len(subjects)) if subjects else ():
        contents.added(record.subject, record.offset + 1, 40)


@given(st.lists(SUBJECTS, max_size=30), PATTERNS, st.integers(1, 31), st.lists(SUBJECTS, max_size=5))
def test_each_look_sees_what_a_plain_list_holds(
    subjects: list[bytes], pattern: bytes, sequence: int, later: list[bytes]
) -> None:
    wanted, matching = SubjectFilter([pattern]), SubjectFilter([pattern]).matches
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looking, "SUBJECTS", 2)
        patch.setattr(looking, "SCAN_RECORDS", 3)
        patch.setattr(purging, "SCAN_RECORDS", 3)
        patch.setattr(looking, "PASSED", 3)

        def look(work: Callable[[Contents], Awaitable[T]], more: list[bytes]) -> tuple[T, list[bytes]]:
            """The result, and what there was at the end; `more` comes in while it is looked."""

            async def main() -> tuple[T, list[bytes]]:
                contents = held(subjects)
                task = asyncio.ensure_future(work(contents))
                await asyncio.sleep(0)
                come = list(subjects)
                if more and not task.done():
                    add(contents, more)
                    come += more
                return await task, come

            return asyncio.run(main())

        count, come = look(lambda contents: looking.count_matching(contents, sequence, wanted), later)
        assert count == sum(map(matching, come[sequence - 1 :]))
        lasts = {subject: place for place, subject in enumerate(subjects, 1) if matching(subject)}
        found, _ = look(lambda contents: looking.last_sequences(contents.subjects, wanted, 1000), [])
        assert found == sorted(lasts.values())
        early = {s: place for place, s in enumerate(subjects[:sequence], 1) if matching(s)}
        found, _ = look(lambda contents: looking.lasts_up_to(contents, wanted, min(sequence, len(subjects))), [])
        assert found == sorted(early.values())
        (total, page), _ = look(lambda contents: looking.page_of_counts(contents.subjects, pattern, 1, 2), [])
        names = sorted(set(filter(matching, subjects)))
        assert (total, page) == (len(names), {name.decode(): subjects.count(name) for name in names[1:3]})
        first, _ = look(lambda contents: looking.next_matching(contents, sequence, wanted), [])
        places = [place for place, s in enumerate(subjects, 1) if place >= sequence and matching(s)]
        assert (first.offset + 1 if first is not None else 0) == (places[0] if places else 0)


@given(st.lists(SUBJECTS, max_size=30), PATTERNS, st.integers(0, 31), st.integers(0, 4))
@example([b"a", b"a"], b">", 0, 3)
def test_a_purge_in_turns_removes_what_a_plain_list_would_lose(
    subjects: list[bytes], pattern: bytes, below: int, keep: int
) -> None:
    wanted = SubjectFilter([pattern])
    contents = held(subjects)
    reported: list[tuple[int, bytes]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looking, "SCAN_RECORDS", 3)
        patch.setattr(purging, "SCAN_RECORDS", 3)
        patch.setattr(purging, "SCAN_ALONE", 3)
        patch.setattr(contents_module, "PASSED", 3)
        count = finish(purging.purging(contents, wanted, below, keep, reported.extend))
    matching = [(place, subject) for place, subject in enumerate(subjects, 1) if wanted.matches(subject)]
    gone = [each for each in matching[: max(0, len(matching) - keep)] if not below or each[0] < below]
    assert reported == gone
    left = [record.offset + 1 for record in contents.scan(0)]
    assert set(left) == set(range(1, len(subjects) + 1)) - {place for place, _ in gone}
    assert (count, contents.subjects.messages) == (len(gone), len(left))


@given(
    st.lists(SUBJECTS, max_size=30),
    st.lists(SUBJECTS, max_size=3, unique=True),
    st.integers(1, 31),
    st.sampled_from([-1, 3]),
)
def test_sequences_of_literal_subjects_are_known_wherever_their_only_message_or_a_history_tells(
    subjects: list[bytes], patterns: list[bytes], sequence: int, history: int
) -> None:
    contents, wanted = held(subjects, history), SubjectFilter(patterns)
    left = {record.offset + 1: record.subject for record in contents.scan(0)}
    found = [place for place, subject in left.items() if place >= sequence and subject in patterns]
    alone = all(subjects.count(left[place]) == 1 for place in found)
    known = contents.known_from(sequence, wanted)
    assert known == (found if alone or history > 0 else None)


def test_the_only_message_of_a_subject_is_found_counted_and_purged_without_reading_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contents, wanted = held([b"a"] * 50 + [b"b"] + [b"a"] * 50), SubjectFilter([b"b"])
    monkeypatch.setattr(looking, "records", None)

    async def main() -> None:
        assert await looking.count_matching(contents, 2, wanted) == 1
        assert await looking.count_matching(contents, 52, wanted) == 0
        assert await looking.next_matching(contents, 52, wanted) is None
        found = await looking.next_matching(contents, 2, wanted)
        assert found is not None
        assert found.offset == 50
        assert finish(purging.purging(contents, wanted, 0, 0, lambda gone: None)) == 1

    asyncio.run(main())
    assert contents.subjects.messages == 100


# ── between the turns others are served ──

MESSAGES = 400


async def turns_of(work: Awaitable[T]) -> tuple[T, int]:
    """The result, and how many turns the loop had meanwhile."""
    counted = 0
    done = False

    def tick() -> None:
        nonlocal counted
        counted += 1
        if not done:
            asyncio.get_running_loop().call_soon(tick)

    tick()
    result = await work
    done = True
    return result, counted


async def filled(desk: Desk) -> None:
    await desk.api(
        "STREAM.CREATE.S", {"name": "S", "subjects": ["s.*", "t"], "storage": "memory", "allow_direct": True}
    )
    for number in range(MESSAGES):
        await desk.publish(f"s.{number}", b"")
    await desk.publish("t", b"last")


REQUESTS: dict[str, tuple[str, Any]] = {
    "subjects": ("STREAM.INFO.S", {"subjects_filter": "s.*"}),
    "next": ("STREAM.MSG.GET.S", {"seq": 1, "next_by_subj": "*"}),
    "last": ("STREAM.MSG.GET.S", {"last_by_subj": "*"}),
    "purge": ("STREAM.PURGE.S", {"filter": "s.*"}),
    "consumer, filtered": (
        "CONSUMER.CREATE.S.C.s.*",
        {"stream_name": "S", "config": {"name": "C", "filter_subject": "s.*", "ack_policy": "none"}},
    ),
    "consumer, last per subject": (
        "CONSUMER.CREATE.S.C.s.*",
        {"stream_name": "S", "config": {"name": "C", "filter_subject": "s.*", "deliver_policy": "last_per_subject"}},
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_long_request_takes_many_turns_of_the_loop(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb, document = REQUESTS[name]
    monkeypatch.setattr(looking, "SUBJECTS", 16)
    for module in (looking, contents_module):
        monkeypatch.setattr(module, "SCAN_RECORDS", 16)
    monkeypatch.setattr(looking, "PASSED", 16)
    monkeypatch.setattr(purging, "SCAN_ALONE", 16)
    monkeypatch.setattr(contents_module, "PASSED", 16)
    monkeypatch.setattr("headwater.jetstream.stream_api.SCAN_RECORDS", 16)

    async def main() -> None:
        async with served(tmp_path) as desk:
            await filled(desk)
            answer, counted = await turns_of(desk.api(verb, document))
            assert counted > MESSAGES // 16
            if name == "subjects":
                assert answer["state"]["subjects"] == {f"s.{number}": 1 for number in range(MESSAGES)}
            elif name in ("next", "last"):
                assert answer["message"]["seq"] == MESSAGES + 1
            elif name == "purge":
                assert answer["purged"] == MESSAGES
                assert (await desk.api("STREAM.INFO.S"))["state"]["messages"] == 1
            else:
                assert answer["num_pending"] == MESSAGES

    asyncio.run(main())


@pytest.mark.parametrize(
    ("document", "messages"),
    [
        ({"seq": 1, "batch": 500}, MESSAGES + 1),
        ({"seq": 1, "next_by_subj": "*", "batch": 5}, 1),
        ({"seq": 1, "next_by_subj": "*"}, 1),
        ({"multi_last": ["s.*"], "batch": 1000}, MESSAGES),
        ({"multi_last": ["s.*"], "up_to_seq": 50}, 50),
    ],
)
def test_direct_gets_take_many_turns_of_the_loop(
    document: dict[str, Any], messages: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "SUBJECTS", 16)
    monkeypatch.setattr(looking, "SCAN_RECORDS", 8)
    monkeypatch.setattr(looking, "PASSED", 8)
    monkeypatch.setattr("headwater.jetstream.direct_get.SCAN_RECORDS", 8)
    monkeypatch.setattr("headwater.jetstream_ranges.several_answers.TURN_MESSAGES", 8)

    async def main() -> None:
        async with served(tmp_path) as desk:
            await filled(desk)
            listener = desk.listen("_INBOX.direct")

            async def ask() -> int:
                body = json.dumps(document).encode()
                desk.router.publish(b"$JS.API.DIRECT.GET.S", b"_INBOX.direct", b"", body)
                count = 0
                while True:
                    received = await listener.next()
                    if b"204 EOB" in received.header_block:
                        return count
                    assert b" 404 " not in received.header_block
                    count += 1
                    if "batch" not in document and "multi_last" not in document:
                        return count

            count, counted = await turns_of(ask())
            assert count == messages
            assert counted > min(MESSAGES, 50) // 16

    asyncio.run(main())


def test_what_only_looks_does_not_hold_up_the_requests_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "SUBJECTS", 4)

    async def main() -> None:
        async with served(tmp_path) as desk:
            await filled(desk)
            slow = asyncio.ensure_future(desk.api("STREAM.INFO.S", {"subjects_filter": "s.*"}))
            await asyncio.sleep(0)
            assert (await desk.api("STREAM.NAMES"))["streams"] == ["S"]
            assert not slow.done()
            assert len((await slow)["state"]["subjects"]) == MESSAGES

    asyncio.run(main())
