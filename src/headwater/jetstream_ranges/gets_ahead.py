# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Direct gets by subject that came together: what they need is read ahead, for all at once.

    PUB $JS.API.DIRECT.GET.S.a _INBOX.1 0 … PUB $JS.API.DIRECT.GET.S.b _INBOX.1 0 …      up to 32 of one stream
    1. the slot of each subject in the stream's table     2. its row, with the sequence     3. the record, in a mapped file

With a million messages each of these steps waits for memory. In passes over many requests the waits overlap. Nothing is
decided here, and nothing kept: the requests are then taken one after the other, each as if it had come alone
(direct_answer.py). Of a stream whose messages are all in memory nothing is read ahead. Compiled only.
"""

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.headwater.exchange.ahead import Foresight
    from cython.cimports.headwater.jetstream_state.subject_rows import SubjectRows
    from cython.cimports.headwater.jetstream_state.subject_table import SubjectTable
    from cython.cimports.headwater.streams.log import Log
    from cython.cimports.headwater.streams.log_reader import LogReader
    from cython.cimports.headwater.wire.cache_lines import prefetch
    from cython.cimports.headwater.wire.client_ops import ClientOpParser
    from cython.cimports.headwater.wire.publish_series import _sizes_end
    from cython.cimports.headwater.wire.scan import word_end
    from cython.cimports.libc.string import memchr, memcmp
else:
    from headwater.exchange.ahead import Foresight
    from headwater.jetstream_state.subject_table import SubjectTable
    from headwater.streams.log import Log
    from headwater.streams.log_reader import LogReader
    from headwater.wire.client_ops import ClientOpParser

from collections.abc import Mapping

from headwater.jetstream_ranges.direct_answer import DIRECT_PREFIX, DirectStream

_MOST: cython.Py_ssize_t = 32  # requests in one look
_MOST_BYTES: cython.Py_ssize_t = 512  # of a record
_LINE = b"PUB " + DIRECT_PREFIX
_START: cython.Py_ssize_t = len(_LINE)


class GetsAhead(Foresight):
    """Of one account's streams."""

    def __init__(self, streams: Mapping[str, DirectStream]) -> None:
        super().__init__()
        self._streams = streams
        self._count = 0

    def look(self, ops: ClientOpParser) -> cython.int:
        """See `Foresight`."""
        if cython.compiled:
            base: cython.p_char = PyByteArray_AS_STRING(ops.message.buffer)
            raw: cython.p_uchar = cython.cast(cython.p_uchar, base)
            at: cython.Py_ssize_t = ops._position
            filled: cython.Py_ssize_t = ops._filled
            line: cython.p_char = _LINE
            self.seen = at
            if at + _START >= filled or memcmp(base + at, line, _START) != 0:
                return 0
            name: bytes | None = None
            stream: DirectStream | None = None
            names: list[bytes] = []
            reader: LogReader | None = None
            size: cython.Py_ssize_t = 0
            self._count = 0
            while len(names) < _MOST and at + _START < filled and memcmp(base + at, line, _START) == 0:
                start: cython.Py_ssize_t = at + _START
                stop: cython.Py_ssize_t = word_end(raw, start, filled)
                if stop >= filled or base[stop] != 32:
                    break
                body: cython.Py_ssize_t = _sizes_end(raw, stop + 1, filled, cython.address(size)) + 2
                if body < 2 or body + size + 2 > filled:
                    break
                found: cython.p_char = cython.cast(cython.p_char, memchr(base + start, 46, stop - start))  # .
                if size != 0 or found == cython.NULL:
                    break  # a get by sequence waits for less than it costs to look ahead
                dot: cython.Py_ssize_t = found - base
                if name is None:
                    name = PyBytes_FromStringAndSize(base + start, dot - start)
                    stream = self._streams.get(name.decode("utf-8", "replace"))
                    reader = self._reader_of(stream)
                    if reader is None:
                        self.seen = filled
                        return 0
                elif (
                    dot - start != len(name) or memcmp(base + start, cython.cast(cython.p_char, name), dot - start) != 0
                ):
                    break
                names.append(PyBytes_FromStringAndSize(base + dot + 1, stop - dot - 1))
                at = body + size + 2
            self.seen = at
            if stream is not None:
                self._rows(stream.contents.subjects, names)
            if reader is not None:
                self._read_ahead(reader)
        return 0

    def _read_ahead(self, reader: LogReader) -> cython.int:
        """Have the records of `_sequence` in the processor's caches, as far as they are mapped."""
        if cython.compiled:
            index: cython.Py_ssize_t
            for index in range(self._count):
                self._address[index] = 0
                if self._sequence[index] > 0:
                    self._address[index] = reader.address(self._sequence[index] - 1, cython.address(self._size[index]))
            # As in `publishes_ahead`: each waits for where its page is, and only in a loop of nothing else at the same time.
            place: cython.ulonglong
            end: cython.ulonglong
            for index in range(self._count):
                place = self._address[index]
                if place != 0:
                    end = place + min(self._size[index], _MOST_BYTES)
                    while place < end:
                        prefetch(cython.cast(cython.p_void, place))
                        place += 64
                    prefetch(cython.cast(cython.p_void, end - 1))
        return 0

    def _reader_of(self, stream: DirectStream | None) -> LogReader | None:
        """That of a stream's log, unless all its messages are in memory."""
        if stream is None or not isinstance(stream.contents.log, Log):
            return None
        log: Log = stream.contents.log
        reader: LogReader = log.reader
        return None if reader.recent.reaches(log.start_offset) else reader

    def _rows(self, subjects: SubjectTable, names: list[bytes]) -> cython.int:
        """The last sequence of each of these subjects, as far as the table knows it."""
        if cython.compiled:
            rows: SubjectRows = subjects._rows
            name: bytes
            place: cython.Py_ssize_t
            for name in names:
                rows.slot_ahead(name)
            for name in names:
                rows.row_ahead(name)
            for name in names:
                place = rows.find(name)
                if place != 0:
                    self._sequence[self._count] = rows.last(place)
                    self._count += 1
        return 0
