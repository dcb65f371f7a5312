"""Connects a stream that copies others to its copiers (`jetstream_sources`).

The copiers store messages by `copy`, which skips the subject match and the checks of a publish, and `when_stored`
reports when they are durable. Their positions are kept with the stream: in the messages themselves, also in removed
ones that are still in a file of the log; in the document beside the log's index; and, before removed messages leave the
disk, in a document of its own (`StreamDirectory.save_positions`). So after a crash a source continues where it was and
copies no message twice.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from headwater.errors import StorageError
from headwater.jetstream.domain import Domain
from headwater.jetstream_documents.streams import SourceInfo, StreamConfig
from headwater.jetstream_publishing.publishing import Publishing
from headwater.jetstream_sources.stamp import Position, read_stamp
from headwater.jetstream_state.items import Answer
from headwater.jetstream_state.store import MOST_SAVED, PositionsRecord, StreamDirectory
from headwater.streams.log import Log, begin_at

if TYPE_CHECKING:
    from headwater.jetstream_sources.copies import Copies


class Copying:
    """The copiers of one stream; every stream has one of these, even when it copies nothing. `directory`: None for a
    stream in memory."""

    def __init__(self, publishing: Publishing, log: Log, domain: Domain, directory: StreamDirectory | None) -> None:
        self._publishing = publishing
        self._log = log
        self._domain = domain
        self._directory = directory
        self._known_end = 0  # of the log: what is below it is in `_positions`
        self._copies: Copies | None = None
        self._positions: dict[str, Position] = {}
        publishing.positions = self.positions

    # ── called by the stream ──

    def restore(self, positions: Mapping[str, tuple[int, str]], end: int) -> None:
        """Blocking: restore the positions from a document about the messages below offset `end`, from the positions
        saved later, and from messages removed since. Call it once, before `learn`. Raises StorageError."""
        saved = self._directory.positions if self._directory is not None else None
        if saved is not None and end < saved.end <= self._log.end_offset:
            positions, end = saved.positions, saved.end
        self._positions.update({index: Position(*place) for index, place in positions.items()})
        self._known_end = end
        if self._publishing.rules.config.sources or self._positions:
            for cursor in self._log.reader.cursors_in_files(end):
                self.learn(cursor.offset, cursor.header_block())
            self._known_end = self._log.end_offset

    def learn(self, offset: int, header_block: bytes) -> None:
        """Read the position of a source from a message stored in an earlier run, if the message has one."""
        stamp = read_stamp(header_block) if offset >= self._known_end else None
        if stamp is not None:
            self._positions[stamp[0]] = stamp[1]

    def save(self) -> Callable[[], None] | None:
        """Return a function that makes the present positions, schedules and newest ids durable (blocking, raises OSError);
        None if there are none."""
        positions, schedules = self.positions(), self._publishing.schedules.rows()
        ids = self._publishing.duplicates.dump(self._publishing.ticks_apart(), MOST_SAVED)
        end = self._log.end_offset
        if self._directory is None or not (positions or schedules or ids):
            return None
        record = PositionsRecord(end, dict(positions), schedules, [row for row in ids if row[1] < end])
        return partial(self._directory.save_positions, record)

    def positions(self) -> Mapping[str, tuple[int, str]]:
        """The durable positions of the sources, by their index names."""
        if self._copies is not None:
            self._copies.note(self._positions)
        return self._positions

    def follow(self, config: StreamConfig) -> None:
        """Copy the configured sources; called once the API is ready, and after each change."""
        router = self._publishing.router
        if self._copies is None and (config.mirror is not None or config.sources) and router is not None:
            from headwater.jetstream_sources.copies import Copies  # here: most servers copy nothing

            self._copies = Copies(self, router, self._domain.account, self._domain.name)
            self._publishing.on_copies_lost = self._on_lost
        if self._copies is not None:
            self._copies.follow(config, self._positions)

    def infos(self) -> tuple[SourceInfo | None, list[SourceInfo] | None]:
        """The mirror and the sources in STREAM.INFO."""
        return self._copies.infos() if self._copies is not None else (None, None)

    def on_stream_made(self, name: str) -> None:
        """A stream of this account was created; it may be the origin of a source."""
        if self._copies is not None:
            self._copies.on_stream_made(name)

    def stop(self, *, for_good: bool = False) -> None:
        """Stop copying. `for_good`: the stream is being deleted."""
        if self._copies is not None:
            self._copies.stop(for_good=for_good)

    def _on_lost(self, error: StorageError) -> None:
        assert self._copies is not None
        self._copies.on_lost(error)

    # ── called by the copiers ──

    @property
    def name(self) -> str:
        """The stream's name."""
        return self._publishing.rules.config.name

    @property
    def last_sequence(self) -> int:
        """The sequence of the last durable message."""
        return self._log.end_offset

    def copy(self, subject: bytes, header_block: bytes, payload: bytes, timestamp_ns: int, sequence: int) -> int:
        """Store a message of another stream, at `sequence` and with its time if they are not 0; returns its sequence, 0 for
        one that was stored before. Raises JetStreamError where a limit refuses it, StorageError."""
        return self._publishing.copy(subject, header_block, payload, timestamp_ns, sequence)

    def begin_behind(self, sequence: int) -> None:
        """The origin's messages up to this sequence are not copied: a stream that holds none shows that at once."""
        log = self._log
        if not log.record_count and log.end_offset == log.next_offset < sequence:
            begin_at(log, sequence)

    @property
    def copy_plain(self) -> Callable[[bytes, bytes, bytes, int, int], int]:
        """See `Capture.copy`."""
        return self._publishing.copy_plain

    def when_stored(self, sequence: int, answer: Answer) -> None:
        """Call `answer` once the copy with this sequence is durable, or lost: now or later."""
        self._publishing.when_stored(sequence, answer)
