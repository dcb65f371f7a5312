"""Ends the streams of an account when its server stops: every log is closed, whatever goes wrong with one of them.

What waits for the disk does so side by side. Closing the logs waits for nothing, so one thread closes them all: several
would only wait for each other, as each of the twenty short calls per stream lets another one go first.

Whatever fails is logged with its stream. Nothing is raised: the rest of the stop closes the clients' connections.
"""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from headwater.errors import StorageError
from headwater.jetstream.consumer_registry import ConsumerRegistry
from headwater.jetstream.stream import Stream
from headwater.jetstream_documents.pull_requests import SERVER_SHUTDOWN

logger = logging.getLogger(__name__)

T = TypeVar("T")

CLOSERS = 16  # threads that wait for the disk when streams end: it handles many syncs at once


async def end_streams(streams: Sequence[Stream], consumers: ConsumerRegistry, *, sync: bool) -> None:
    """Write and acknowledge staged messages, store the consumers' states, close the logs. `sync`: they are not synced with
    each write."""
    in_thread = asyncio.get_running_loop().run_in_executor
    closers = ThreadPoolExecutor(CLOSERS, "headwater-jetstream-close")
    try:
        detached = await asyncio.gather(*(stream.detach() for stream in streams), return_exceptions=True)
        _expected(streams, detached)
        saving = (consumers.save_all(stream, closers) for stream in streams)
        saved = _expected(streams, await asyncio.gather(*saving, return_exceptions=True))
        for stream in streams:
            _end_consumers(stream)
        if sync:
            await asyncio.gather(*(in_thread(closers, _sync, stream) for stream in streams))
        await in_thread(
            closers, _close_all, [(stream, outcome is True) for stream, outcome in zip(streams, saved, strict=True)]
        )
    finally:
        closers.shutdown(wait=False)


def _expected(streams: Sequence[Stream], outcomes: Sequence[T | BaseException]) -> list[T | None]:
    """The outcomes; None where there was an error instead, which is logged."""
    for stream, outcome in zip(streams, outcomes, strict=True):
        if isinstance(outcome, BaseException):
            _failed(stream, outcome)
    return [None if isinstance(outcome, BaseException) else outcome for outcome in outcomes]


def _end_consumers(stream: Stream) -> None:
    for consumer in stream.consumers.values():
        try:
            consumer.close(SERVER_SHUTDOWN)
        except Exception as error:  # noqa: BLE001  (the others' clients are still to be informed)
            _failed(stream, error)


def _sync(stream: Stream) -> None:
    """A log whose sync failed is closed without another try and without an error, so this one is reported here."""
    try:
        stream.log.sync()
    except StorageError as error:
        _not_closed(stream, error)
    except Exception as error:  # noqa: BLE001  (the other logs are still to be synced)
        _failed(stream, error)


def _close_all(streams: list[tuple[Stream, bool]]) -> None:
    """Close the logs, and remove the journals of consumers that are all saved whole."""
    for stream, saved in streams:
        try:
            remove_journal(stream, saved)
            stream.log.close(_document(stream))
        except StorageError as error:
            _not_closed(stream, error)
        except Exception as error:  # noqa: BLE001  (the other logs are still to be closed)
            _failed(stream, error)


def _document(stream: Stream) -> bytes:
    """What the next start need not read from the log; b"" if it has to."""
    try:
        return stream.document()
    except Exception as error:  # noqa: BLE001  (the log is to be closed without it)
        _failed(stream, error)
        return b""


def remove_journal(stream: Stream, saved: bool) -> None:
    """Blocking: remove the journal of consumers that are all `saved` whole."""
    try:
        if saved and stream.keeper is not None:
            stream.keeper.remove_files()
    except OSError as error:
        logger.error("journal_not_removed stream=%s reason=%s", stream.name, error)
    except Exception as error:  # noqa: BLE001  (the log is still to be closed)
        _failed(stream, error)


def _not_closed(stream: Stream, error: StorageError) -> None:
    logger.error("log_not_closed directory=%s reason=%s", stream.log.directory, error)


def _failed(stream: Stream, error: BaseException) -> None:
    logger.error("stream_not_ended_cleanly stream=%s", stream.name, exc_info=error)
