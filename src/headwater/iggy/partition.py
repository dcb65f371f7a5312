"""One partition: a log, its group commit, and how sends and polls use them.

A send was checked by its codec; here it is stamped with 24 bytes and the batch checksum, copied out of the receive buffer
(writing 1 MB out of that buffer was not quicker), and staged; the answer waits for the disk. A poll is a list of byte
strings: the stored batches of the range, the first and the last cut if necessary, records from NATS translated. Large whole
batches are not read if the transport can send them from the file.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from headwater.durable_files.files import FileRange, storage_error
from headwater.errors import HeaderError, StorageError
from headwater.group_commit.committer import Committer
from headwater.group_commit.writers import Writers
from headwater.iggy.unique_ids import UniqueIds
from headwater.iggy_wire.batches import MAX_TIMESTAMP_DELTA, Part, build_stored, cut, first_messages, stamp_and_seal
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.identifiers import PollingStrategy, StrategyKind
from headwater.model.header_mapping import nats_to_typed
from headwater.model.headers import Headers
from headwater.model.typed_headers import HeaderForm
from headwater.streams.iggy_batch import CHECKSUM_SIZE
from headwater.streams.iggy_records import MESSAGE_ID, NANOSECONDS
from headwater.streams.log import Log, StoredBatch, StoredRecord
from headwater.streams.log_format import DIALECT_IGGY
from headwater.streams.segment import LARGE_BATCH
from headwater.wire.memory import slice_bytes

MAX_POLL_BYTES = 32 << 20  # of one answer: half the limit of a frame
TURN_BYTES = 2 << 20  # read per turn of the loop
USUAL_MESSAGE = 1 << 10  # bytes; only sizes reads from the disk
SUBJECT_HEADER = "Nats-Subject"  # header with the subject of a message from NATS
ERROR_HEADER = "Nats-Header-Error"  # header of a message whose NATS headers could not all be translated: why, and which
LONGEST_HEADER = 255  # bytes of a typed header's value

Done = Callable[[StorageError | None], None]


class Batch(NamedTuple):
    """A batch of messages, `buffer[start:end]`."""

    buffer: bytearray
    start: int
    end: int


class Polled(NamedTuple):
    """The result of a poll: batches to send one after the other, and the offset of their last message."""

    batches: list[bytes | FileRange]
    messages: int
    last_offset: int
    current_offset: int

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return sum(map(len, self.batches))

    def followed_by(self, more: "Polled") -> "Polled":
        """The batches of both, those of `more` last."""
        self.batches.extend(more.batches)
        return Polled(self.batches, self.messages + more.messages, more.last_offset, more.current_offset)

    def shortened(self, most: int, strict: bool) -> "Polled":
        """As many messages of the first batch as fit `most` bytes, but at least one unless `strict`."""
        first = self.batches[0]
        body, number, last = first_messages(first if isinstance(first, bytes) else first.read(), most)
        if strict and len(body) > most:
            return Polled([], 0, -1, self.current_offset)
        return Polled([body], number, last, self.current_offset)

    def read(self) -> list[bytes]:
        """The batches as byte strings. Raises StorageError."""
        try:
            return [batch if isinstance(batch, bytes) else batch.read() for batch in self.batches]
        except OSError as error:
            raise storage_error("read what was found", error) from error


class Partition:
    """See the head of this module. `index` is its position in the topic."""

    def __init__(self, uid: int, index: int, created: int, log: Log, writers: Writers) -> None:
        self.uid = uid
        self.index = index
        self.created = created
        self.log = log
        self.committer = Committer(log, writers, self._on_durable, self._on_failed)
        self.committer.upkeep.document = bytes  # checkpoints store only the log's own index
        self.on_stored: Callable[[], None] | None = None  # called after messages were stored or dropped
        self.on_refused: Callable[[StorageError], None] | None = None  # called after sends were refused by the disk
        self.watchers: list[Callable[[], None]] = []  # called when messages were stored, for waiting polls
        self.unique: UniqueIds | None = None
        self.closing = False  # its files are about to be closed: nothing more is staged
        self._last_size = 0  # bytes of the batch that was read last

    @property
    def size(self) -> int:
        """Bytes of its messages on disk; 0 in an empty partition, whose files have headers alone."""
        return self.log.size_bytes if self.log.record_count else 0

    @property
    def current_offset(self) -> int:
        """The offset of the last message; 0 in an empty partition, as in upstream."""
        return max(0, self.log.end_offset - 1)

    def append(self, batch: Batch, count: int, checksums: bytes, now_us: int, shown_id: int, done: Done) -> int:
        """Stage a checked batch, in which the stamp is written; returns its base offset.

        `done` is called when it is durable, or has failed. Raises IggyError when the disk is too far behind, or when the
        partition is being closed, StorageError when the log is read-only.
        """
        if self.closing:
            raise refusal("cannot_append_message", "the partition is being closed: the server stops, or it was deleted")
        if self.committer.full:
            raise refusal("cannot_append_message", "the disk does not keep up: try again later")
        base_offset = self.log.next_offset
        buffer, at, end = batch
        if self.unique is not None:
            unique = self.unique
            admitted = unique.admit(bytes(memoryview(buffer)[at:end]), base_offset, now_us)
            if admitted.batch is None:
                self.committer.add(done, 0)
                return admitted.original
            if admitted.batch:
                buffer, at, end, checksums = admitted.batch, 0, len(admitted.batch), admitted.checksums
                count = len(checksums) // CHECKSUM_SIZE
            answer, ids = done, admitted.ids

            def done(error: StorageError | None) -> None:
                unique.forget(ids, error)
                answer(error)

            if self.log.failure is not None:  # else a repetition would be confirmed as one of a send that is stored
                unique.forget(ids, self.log.failure)
        stamp_and_seal(buffer, at, shown_id, base_offset, now_us, checksums)
        self.log.stage_iggy(slice_bytes(buffer, at, end), count, now_us * NANOSECONDS)
        self.committer.add(done, end - at)
        return base_offset

    def _on_durable(self, sends: list[Done]) -> None:
        for done in sends:
            done(None)
        if self.on_stored is not None:
            self.on_stored()
        for watcher in self.watchers:
            watcher()

    def _on_failed(self, sends: list[Done], error: StorageError) -> None:
        if self.unique is not None:
            # Those staged since may have left out messages because they were in these, and would be confirmed without them.
            sends = sends + self.committer.give_up_waiting()
        for done in sends:
            done(error)
        if sends and self.on_refused is not None:
            self.on_refused(error)

    async def end(self) -> None:
        """Take no more sends, and wait until those before are durable and answered, or have failed."""
        self.closing = True
        await self.committer.flush()
        self.committer.close()

    async def flush(self) -> None:
        """Wait until everything sent so far is durable and answered, or has failed."""
        await self.committer.flush()

    def start_of(self, strategy: PollingStrategy, count: int, committed: int | None) -> int:
        """The offset at which a poll begins. Raises StorageError."""
        log = self.log
        match strategy.kind:
            case StrategyKind.OFFSET:
                return strategy.value
            case StrategyKind.TIMESTAMP:
                return log.offset_at(strategy.value * NANOSECONDS)
            case StrategyKind.FIRST:
                return log.start_offset
            case StrategyKind.LAST:
                return max(log.start_offset, log.end_offset - count)
            case StrategyKind.NEXT:
                return log.start_offset if committed is None else committed + 1

    def poll(self, offset: int, count: int, shown_id: int, ranges: bool = False, most: int = 0) -> Polled:
        """Up to `count` messages from `offset` on, as many as fit `most` bytes (0: as many as one answer holds), but one
        batch at least. `ranges`: the transport can send parts of files. Raises StorageError."""
        most = most or MAX_POLL_BYTES
        found: list[bytes | FileRange] = []
        taken = size = 0
        last = -1
        while ranges and taken < count and self._last_size >= LARGE_BATCH:
            whole = self.log.range_at(offset)
            if whole is None or whole.header.dialect != DIALECT_IGGY or taken + whole.header.record_count > count:
                break
            if found and size + len(whole.body) > most:
                break
            found.append(whole.body)
            self._last_size = len(whole.body)
            taken += whole.header.record_count
            size += len(whole.body)
            offset = whole.header.end_offset
            last = offset - 1
        if taken < count and size < most:
            expected = 1 if self._last_size >= LARGE_BATCH else min(count * USUAL_MESSAGE, most)
            for part, number, last_here in self._parts(offset, expected, count - taken, shown_id):
                if found and size + len(part) > most:
                    break
                found.append(part)
                taken += number
                size += len(part)
                last = last_here
                if taken >= count or size >= most:
                    break
        return Polled(found, taken, last, self.current_offset)

    def _parts(self, offset: int, expected: int, count: int, shown_id: int) -> Iterator[tuple[bytes, int, int]]:
        """(batch, messages, offset of the last) of each piece of an answer, from `offset` on, up to `count` messages."""
        for batch in self.log.batches(offset, expected):
            header = batch.header
            if not header.holds_records:
                continue
            self._last_size = header.body_size
            if header.dialect != DIALECT_IGGY:
                for run in _runs(self._records(batch, offset, count)):
                    yield _translated(run, shown_id), len(run), run[-1].offset
                    count -= len(run)
                continue
            first = max(0, offset - header.base_offset)
            number = min(count, header.record_count - first)
            if number == header.record_count:
                yield batch.body, number, header.end_offset - 1
            else:
                yield cut(batch.body, first, number), number, header.base_offset + first + number - 1
            count -= number

    def _records(self, batch: StoredBatch, offset: int, count: int) -> list[StoredRecord]:
        records: list[StoredRecord] = []
        cursor = batch.cursor()
        while len(records) < count and cursor.advance():
            if cursor.offset >= offset and not self.log.is_absent(cursor.offset):
                records.append(cursor.record())
        return records


def _runs(records: list[StoredRecord]) -> Iterator[list[StoredRecord]]:
    """The records in runs that one batch of Iggy's can hold: those of a copied or restored stream have the times of the
    original, and many of them may have been written at once."""
    run: list[StoredRecord] = []
    for record in records:
        if run and record.timestamp_ns - run[0].timestamp_ns > MAX_TIMESTAMP_DELTA * NANOSECONDS:
            yield run
            run = []
        run.append(record)
    if run:
        yield run


def _translated(run: list[StoredRecord], shown_id: int) -> bytes:
    timestamp = run[0].timestamp_ns // NANOSECONDS
    parts = [part_of(record, timestamp) for record in run]
    return build_stored(parts, [record.offset for record in run], shown_id, timestamp)


def _id_in(headers: Headers) -> int:
    """The message id in the headers, as the translation to NATS writes it; 0 for none: what stands there is text, then."""
    given = headers.get_all(MESSAGE_ID)
    if len(given) != 1 or not (given[0].isascii() and given[0].isdigit()) or len(given[0]) > 39 or given[0][0] == "0":
        return 0
    number = int(given[0])
    return number if number < 1 << 128 else 0


def part_of(record: StoredRecord, batch_timestamp: int) -> Part:
    """A message from NATS in Iggy's form: typed headers, including the subject, and the id restored."""
    try:
        headers = Headers.parse(record.header_block) if record.header_block else Headers()
    except HeaderError as error:
        headers = Headers([(ERROR_HEADER, str(error)[:200])])
    message_id = _id_in(headers)
    if message_id:
        headers.discard(MESSAGE_ID)
    subject = record.subject.decode("utf-8", "replace")
    if SUBJECT_HEADER in headers:  # a republished message has this header already: keep it after the subject's key
        headers = Headers([(SUBJECT_HEADER, subject), *headers.multi_items()])
    typed, losses = nats_to_typed(headers)
    missing = [loss.name for loss in losses]
    if subject and SUBJECT_HEADER not in typed and SUBJECT_HEADER not in missing:
        if len(subject.encode()) <= LONGEST_HEADER:
            typed[SUBJECT_HEADER] = subject
        else:
            missing.append(SUBJECT_HEADER)
    if missing:  # no publisher waits any more: the reader is the only one who can be informed
        text = f"left out, above {LONGEST_HEADER} bytes: {', '.join(missing)}"
        typed[ERROR_HEADER] = text.encode("utf-8", "replace")[:LONGEST_HEADER].decode("utf-8", "ignore")
    origin = max(record.timestamp_ns // NANOSECONDS, batch_timestamp)
    return Part(message_id.to_bytes(16, "little"), record.payload, typed.encode(HeaderForm.TYPED), origin)
