"""What is read ahead for direct gets changes no answer, whatever else is in the read, and however it is cut."""

from types import SimpleNamespace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st
from support.recording_files import RecordingFiles

from headwater.jetstream_ranges.direct_answer import DirectStream
from headwater.jetstream_ranges.gets_ahead import GetsAhead
from headwater.jetstream_state.subject_table import SubjectTable
from headwater.streams.log import Log
from headwater.streams.options import LogOptions
from headwater.wire.client_ops import ClientOpHandler, ClientOpParser
from headwater.wire.message_view import MessageView

OPS = [
    b"PUB $JS.API.DIRECT.GET.S.key.%d _INBOX.1 0\r\n\r\n" % 3,
    b"PUB $JS.API.DIRECT.GET.S.key.99 _INBOX.1 0\r\n\r\n",
    b"PUB $JS.API.DIRECT.GET.S.> _INBOX.1 0\r\n\r\n",
    b"PUB $JS.API.DIRECT.GET.OTHER.key.1 _INBOX.1 0\r\n\r\n",
    b"PUB $JS.API.DIRECT.GET. _INBOX.1 0\r\n\r\n",
    b"PUB $JS.API.DIRECT.GET.S _INBOX.1 0\r\n\r\n",
    b'PUB $JS.API.DIRECT.GET.S _INBOX.1 9\r\n{"seq":7}\r\n',
    b'PUB $JS.API.DIRECT.GET.S _INBOX.1 11\r\n{"seq":999}\r\n',
    b"PUB $JS.API.DIRECT.GET.S _INBOX.1 2\r\n{}\r\n",
    b"PUB $JS.API.DIRECT.GET.S.key.1 3\r\nabc\r\n",
    b"PUB other 3\r\nabc\r\n",
    b"PING\r\n",
    b"pub $JS.API.DIRECT.GET.S.key.2  _INBOX.1 0\r\n\r\n",
]


class Requests(ClientOpHandler):
    """Notes each publish; `ahead` looks first."""

    def __init__(self, ahead: GetsAhead | None) -> None:
        self.parser = ClientOpParser(self, 4096, 1 << 20)
        self.ahead = ahead
        self.taken: list[tuple[bytes, bytes, bytes]] = []

    def on_publishes(self, ops: ClientOpParser) -> int:
        while True:
            if self.ahead is not None:
                self.ahead.look(ops)
            for _ in range(ops.count):
                self.on_publish(ops.message)
                ops.message.advance(ops.stride)
            if not ops.next_publish():
                return 0

    def on_publish(self, message: MessageView) -> int:
        payload = bytes(message.buffer[message.payload : message.end])
        self.taken.append((message.subject_bytes(), message.reply_bytes(), payload))
        return 0


def stream(cache_bytes: int) -> SimpleNamespace:
    log = Log.open(RecordingFiles(), "log", LogOptions(preallocate_bytes=0, cache_bytes=cache_bytes), 1)
    subjects = SubjectTable()
    for number in range(60):
        log.stage(b"key.%d" % (number % 7), b"", b"%d" % number * 200, number)
        subjects.add(b"key.%d" % (number % 7), number + 1, 1)
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)
    assert log.reader.record(30) is not None
    return SimpleNamespace(contents=SimpleNamespace(log=log, subjects=subjects))


STREAMS = [cast(DirectStream, stream(0)), cast(DirectStream, stream(1 << 20))]


@given(st.lists(st.sampled_from(OPS), max_size=80), st.data(), st.sampled_from(STREAMS))
def test_requests_are_taken_as_without_a_look(ops: list[bytes], data: st.DataObject, known: DirectStream) -> None:
    sent = b"".join(ops)
    cut = data.draw(st.integers(0, len(sent)))
    taken = []
    for ahead in (None, GetsAhead({"S": known})):
        requests = Requests(ahead)
        used = requests.parser.parse(bytearray(sent[:cut]), 0, cut)
        requests.parser.parse(bytearray(sent[used:]), 0, len(sent) - used)
        taken.append(requests.taken)
    assert taken[0] == taken[1]
    assert len(taken[0]) == sum(not op.startswith(b"PING") for op in ops)
