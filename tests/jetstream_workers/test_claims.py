"""Creations at several workers at once."""

import asyncio

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.in_loop import in_loop

from headwater.errors import JetStreamError
from headwater.exchange.router import Router
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_room.captured_subjects import CapturedSubjects
from headwater.jetstream_workers import line
from headwater.jetstream_workers.claims import Claim, Claims, Gate
from headwater.jetstream_workers.line import Line, Reply


class Worker:
    """The end of one worker, with streams that are configurations only."""

    def __init__(self, router: Router, number: int, count: int) -> None:
        self.line = Line(router, number, count)
        self.streams: dict[str, StreamConfig] = {}
        self.gate = Gate(self.line)
        self.claims = Claims(
            self.line, "A", lambda: self.streams.values(), self.overlap, lambda storage: 100, lambda storage: 7
        )
        self.line.attach("A", self)
        self.line.start()

    def on_question(self, what: str, payload: bytes) -> Reply:
        if what == "claim":
            return self.gate.check("A", payload, self.claims.check)
        return msgspec.json.encode(self.claims.check(msgspec.json.decode(payload, type=Claim)))

    def on_request(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> None: ...

    def on_seek(self, left: int, subject: bytes, reply: bytes, payload: bytes) -> None: ...

    def on_notice(self, what: str, payload: bytes) -> None: ...

    def overlap(self, name: str, subjects: list[str]) -> bool:
        captured = CapturedSubjects()
        for stream in self.streams.values():
            captured.put(stream.name, stream.subjects)
        return captured.overlap(name, subjects)

    async def create(self, config: StreamConfig, turns: int = 0) -> bool:
        """Whether the stream was made."""
        async with self.claims.claim(config, None) as elsewhere:
            taken = elsewhere.overlaps or self.overlap(config.name, config.subjects)
            for _ in range(turns):  # as the disk takes its time
                await asyncio.sleep(0)
            if not taken:
                self.streams[config.name] = config
            return not taken


def workers(count: int) -> list[Worker]:
    router = Router(asyncio.get_running_loop().call_soon, 1, 1 << 20)
    return [Worker(router, number, count) for number in range(1, count + 1)]


def stream(name: str, *subjects: str, max_bytes: int = -1) -> StreamConfig:
    return StreamConfig(name=name, subjects=list(subjects), max_bytes=max_bytes)


@in_loop
async def test_the_owner_hears_what_all_others_have() -> None:
    one, two, three = workers(3)
    one.streams["a"] = stream("a", "a.*", max_bytes=10)
    three.streams["b"] = stream("b", "b.*", max_bytes=20)
    two.streams["mine"] = stream("mine", "c.*", max_bytes=40)
    async with two.claims.claim(stream("new", "b.x"), None) as elsewhere:
        assert (elsewhere.overlaps, elsewhere.streams) == (True, 2)
        assert elsewhere.reserved == {"file": 30, "memory": 0}
        assert elsewhere.reserved_by_all == {"file": 200, "memory": 200}
        assert elsewhere.weights == {"file": 14, "memory": 14}
        assert elsewhere.configs == []


@in_loop
async def test_a_stream_that_copies_hears_of_every_origin() -> None:
    one, two = workers(2)
    one.streams["origin"] = stream("origin", "a")
    config = msgspec.json.decode(b'{"name":"copy","mirror":{"name":"origin"}}', type=StreamConfig)
    async with two.claims.claim(config, None) as elsewhere:
        assert elsewhere.find("origin") == one.streams["origin"]


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["s.a", "s.b", "s.*", "t"]), st.integers(0, 5)),
        min_size=2,
        max_size=8,
    )
)
def test_streams_made_at_once_at_any_workers_never_overlap(wanted: list[tuple[int, str, int]]) -> None:
    async def scenario() -> None:
        found = workers(3)
        made = await asyncio.gather(
            *(
                found[at].create(stream(f"n{number}", subject), turns)
                for number, (at, subject, turns) in enumerate(wanted)
            )
        )
        kept = [subject for (_, subject, _), ok in zip(wanted, made, strict=True) if ok]
        assert made[0] or any(made)
        assert kept.count("t") == int(any(subject == "t" for _, subject, _ in wanted))
        assert len(kept) == len(set(kept))
        assert "s.*" not in kept or not {"s.a", "s.b"} & set(kept)

    asyncio.run(scenario())


@in_loop
async def test_what_a_stream_will_take_counts_while_it_is_made_and_not_after_it_failed() -> None:
    one, two = workers(2)
    with pytest.raises(ValueError):
        async with two.claims.claim(stream("a", "a", max_bytes=50), None):
            async with one.claims.claim(stream("b", "b"), None) as elsewhere:
                assert (elsewhere.streams, elsewhere.reserved["file"]) == (1, 50)
            raise ValueError
    async with one.claims.claim(stream("b", "a"), None) as elsewhere:
        assert (elsewhere.overlaps, elsewhere.streams, elsewhere.reserved["file"]) == (False, 0, 0)


@in_loop
async def test_an_update_that_takes_nothing_more_needs_no_other_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "PATIENCE", 0.02)
    one = workers(2)[0]
    one.line.count = 3  # the third is away
    old = stream("a", "a", "b")
    async with one.claims.claim(stream("a", "b"), old) as elsewhere:
        assert not elsewhere.overlaps
    for wanted in (stream("a", "a", "c"), stream("a", "a", max_bytes=5)):
        with pytest.raises(JetStreamError, match="worker 3 did not answer"):
            async with one.claims.claim(wanted, old):
                pytest.fail("nobody knows what worker 3 has")
