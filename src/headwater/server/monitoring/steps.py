"""Work that takes long, in steps between which the event loop has its turn: a page about 10,000 clients takes a second.

    def page(...) -> Steps:            drive(page(...), done)        a callback, at once where one step is enough
        ... yield ...                  begun(page(...))              the result, or what to await for it
        return document                await in_turns(page(...))     in a task
                                       at_once(page(...))            without a loop

A step takes some milliseconds at most. `encoded` is the last of them: JSON of a large document, piece by piece.
"""

import asyncio
import logging
from collections.abc import Callable, Generator
from typing import Any

Steps = Generator[None, None, Any]
"""Yields between steps, returns the result."""

SLICE = 256  # entries of a list that are encoded in one step, some microseconds each

logger = logging.getLogger(__name__)


def at_once(steps: Steps) -> Any:
    """What the steps return, without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def begun(steps: Steps) -> Any:
    """What the steps return, if they need no pause; else an awaitable that returns it."""
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    return in_turns(steps)


async def in_turns(steps: Steps) -> Any:
    """What the steps return; the loop has a turn between two of them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        await asyncio.sleep(0)


def drive(steps: Steps, done: Callable[[Any], object]) -> None:
    """Have `done` called with what the steps return: now, if they need no pause, or some turns of the loop later."""
    try:
        next(steps)
    except StopIteration as end:
        done(end.value)
    except Exception:
        logger.exception("page_failed")
    else:
        asyncio.get_running_loop().call_soon(drive, steps, done)


def encoded(value: object, dump: Callable[[object], bytes], indent: bytes = b"\n") -> Steps:
    """The JSON of a document as `dump` would write it whole. `dump` writes `[`, newline and indentation where it is
    pretty; `indent` is the line break before the value's own lines."""
    if not _is_large(value):
        return dump(value).replace(b"\n", indent)
    inner = indent + b"  "
    pieces: list[bytes] = []
    pretty = dump([0]) != b"[0]"
    if isinstance(value, dict):
        for name, part in value.items():
            text = yield from encoded(part, dump, inner)
            pieces.append(dump(name) + (b": " if pretty else b":") + text)
            yield
        opening, closing = b"{", b"}"
    else:
        assert isinstance(value, list)
        for start in range(0, len(value), SLICE):
            some = value[start : start + SLICE]
            if any(map(_is_large, some)):
                for one in some:
                    text = yield from encoded(one, dump, inner)
                    pieces.append(text)
            else:
                text = dump(some)
                pieces.append(text[4:-2].replace(b"\n", indent) if pretty else text[1:-1])
            yield
        opening, closing = b"[", b"]"
    if not pretty:
        return opening + b",".join(pieces) + closing
    return opening + inner + (b"," + inner).join(pieces) + indent + closing


def _is_large(value: object) -> bool:
    if isinstance(value, list):
        return len(value) > SLICE
    return isinstance(value, dict) and any(map(_is_large, value.values()))
