"""Long work in steps with turns of the event loop between them: a page about 10,000 clients takes a second.

    def page(...) -> Steps:            drive(page(...), done)        a callback, at once where one step is enough
        ... yield ...                  begun(page(...))              the result, or what to await for it
        return document                await in_turns(page(...))     in a task
                                       at_once(page(...))            without a loop

A step takes a few milliseconds at most. JSON of a large document is encoded in steps too: `encoded` returns it as a
whole, `encoded_pieces` in pieces, because copying 15 MB takes too long for a step.
"""

import asyncio
import logging
from collections.abc import Callable, Generator, Iterator
from typing import Any

Steps = Generator[Any, None, Any]
"""Yields between steps, returns the result. It may yield a future: the next step then waits for that."""

SLICE = 64  # entries of a list that are encoded in one step, some microseconds each
PIECE = 1 << 18  # bytes of JSON that are joined

logger = logging.getLogger(__name__)


def at_once(steps: Steps) -> Any:
    """The result of the steps, run without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def begun(steps: Steps) -> Any:
    """The result of the steps if they need no pause; else an awaitable that returns it."""
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    return in_turns(steps)


async def in_turns(steps: Steps) -> Any:
    """The result of the steps, with a turn of the loop between them."""
    while True:
        try:
            awaited = next(steps)
        except StopIteration as end:
            return end.value
        await (asyncio.sleep(0) if awaited is None else asyncio.wait((awaited,)))


def drive(steps: Steps, done: Callable[[Any], object]) -> None:
    """Call `done` with the result of the steps: now, if they need no pause, or some turns of the loop later."""
    try:
        awaited = next(steps)
    except StopIteration as end:
        done(end.value)
    except Exception:
        logger.exception("page_failed")
    else:
        if awaited is None:
            asyncio.get_running_loop().call_soon(drive, steps, done)
        else:
            awaited.add_done_callback(lambda _: drive(steps, done))


def encoded(document: object, dump: Callable[[object], bytes]) -> Steps:
    """The JSON of a document as `dump` would write it whole. `dump` writes `[`, newline and indentation where it is pretty.

    Large lists of the document are emptied on the way: to let go of 100,000 entries at once takes longer than a step may."""
    pieces = yield from encoded_pieces(document, dump)
    return b"".join(pieces)


def encoded_pieces(document: object, dump: Callable[[object], bytes]) -> Steps:
    """As `encoded`, in a list of pieces that hold PIECE bytes or a little more; the last may hold less."""
    pieces: list[bytes] = []
    held: list[bytes] = []
    size = 0
    writing = _written(document, dump, b"\n", dump([0]) != b"[0]")
    for text in writing:
        if text is None:
            yield
            continue
        held.append(text)
        size += len(text)
        if size >= PIECE:
            pieces.append(b"".join(held))
            held, size = [], 0
    pieces.append(b"".join(held))
    return pieces


def _written(value: object, dump: Callable[[object], bytes], indent: bytes, pretty: bool) -> Iterator[bytes | None]:
    """The JSON of a value, text after text; None where a step ends. `indent`: the line break before its own lines."""
    if not _is_large(value):
        yield dump(value).replace(b"\n", indent)
        return
    inner = indent + b"  " if pretty else b""
    ends = (b"{", b"}") if isinstance(value, dict) else (b"[", b"]")
    before = ends[0] + inner
    if isinstance(value, dict):
        for name, part in value.items():
            yield before + dump(name) + (b": " if pretty else b":")
            yield from _written(part, dump, inner, pretty)
            yield None
            before = b"," + inner
    else:
        assert isinstance(value, list)
        for start in range(0, len(value), SLICE):
            some = value[start : start + SLICE]
            value[start : start + SLICE] = [None] * len(some)
            if any(map(_is_large, some)):
                for one in some:
                    yield before
                    yield from _written(one, dump, inner, pretty)
                    before = b"," + inner
            else:
                text = dump(some)
                yield before + (text[4:-2].replace(b"\n", indent) if pretty else text[1:-1])
            yield None
            before = b"," + inner
    yield (indent if pretty else b"") + ends[1]


def _is_large(value: object) -> bool:
    if isinstance(value, list):
        return len(value) > SLICE
    return isinstance(value, dict) and any(map(_is_large, value.values()))
