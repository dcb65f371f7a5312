"""The answers to publishes other than the ordinary acknowledgement: refusals, and acknowledgements of duplicates.

A publisher gets its answer at its reply subject, another face of the stream (`Stream.append`) by a callback. Refusals are
counted in either case. What is given a committer leaves behind the answers to the publishes before it, as from nats-server.
"""

from collections.abc import Callable
from functools import partial

import msgspec

from headwater.errors import JetStreamError, StorageError
from headwater.exchange.router import Router
from headwater.group_commit.committer import Committer
from headwater.group_commit.refused_writes import RefusedWrites
from headwater.group_commit.write_stats import WriteStats
from headwater.jetstream_documents.answers import error_document
from headwater.jetstream_documents.api_errors import store_error
from headwater.jetstream_documents.document import ApiError
from headwater.jetstream_state.items import Answer, Item

_SERVERS_FAULT = 429  # and above: codes of refusals that are not the publisher's fault
_ACCOUNT_IS_FULL = 10002


class PublishRefusal(msgspec.Struct):
    """The answer to a publish that was not stored."""

    error: ApiError
    stream: str
    seq: int = 0


def lacks_room(refusal: JetStreamError) -> bool:
    """Whether a publish is refused for lack of space, or another fault that is not its publisher's."""
    return refusal.code >= _SERVERS_FAULT or refusal.err_code == _ACCOUNT_IS_FULL


class PublishAnswers:
    """The answers of one stream; `domain`: "" for none. `head`: the ordinary acknowledgement up to its sequence.
    `on_refused(stream, error)` is called for publishes refused for lack of space, and for those without an answer.
    `stats` counts the account's refusals, `refused` this stream's; `refused_writes` logs those of the disk."""

    def __init__(self, stream: str, domain: str, ticks_ns: Callable[[], int]) -> None:
        self.router: Router | None = None
        self.stats = WriteStats()
        self.refused = 0
        self.refused_writes = RefusedWrites(stream, ticks_ns)
        self.on_refused: Callable[[str, JetStreamError], None] | None = None
        self._stream = stream
        self.head = b'{"stream":%s,' % msgspec.json.encode(stream)
        if domain:
            self.head += b'"domain":%s,' % msgspec.json.encode(domain)
        self.head += b'"seq":'

    def refuse(
        self,
        reply: bytes,
        error: JetStreamError | StorageError,
        answer: Answer | None = None,
        committer: Committer | None = None,
        *,
        answered: bool = True,
    ) -> None:
        """Answer a publish that is not stored; at once if the log itself refuses. `answered`: its publisher learns of it."""
        refusal = self.count_refused(error, answered=answered)
        if answer is not None:
            answer(refusal)
        if reply:
            self.reply_in_turn(committer if refusal is error else None, reply, self.refusal(refusal))

    def reply_in_turn(self, committer: Committer | None, reply: bytes, document: bytes) -> None:
        """Send a document, which may be empty, to a publisher behind the answers to those before it; at once without any, or
        while the disk is far behind."""
        if committer is None or not committer.keeps_places:
            self._publish(reply, document)
        elif document:
            committer.add(Item(reply, document, b"", 0, 0, b""), 0)
        else:
            committer.add(Item(b"", b"", b"", 0, 0, b"", None, partial(self._reply_empty, reply)), 0)

    def _reply_empty(self, reply: bytes, _: JetStreamError | None) -> None:
        self._publish(reply, b"")

    def count_refused(self, error: JetStreamError | StorageError, *, answered: bool = True) -> JetStreamError:
        """Count a publish that is not stored; returns what its publisher is to get."""
        refusal = error if isinstance(error, JetStreamError) else store_error(error)
        self.refused += 1
        self.stats.refused += 1
        if self.on_refused is not None and (not answered or lacks_room(refusal)):
            self.on_refused(self._stream, refusal)
        return refusal

    def refusal(self, error: JetStreamError) -> bytes:
        """The JSON of a refusal."""
        return msgspec.json.encode(PublishRefusal(error_document(error), self._stream))

    def duplicate(self, sequence: int) -> bytes:
        """The JSON that answers a duplicate of the message with this sequence."""
        return b'%s%d,"duplicate": true}' % (self.head, sequence)

    def confirm(self, reply: bytes, ack: bytes, answer: Answer | None) -> None:
        """Answer a publish whose message is durable."""
        if reply:
            self._publish(reply, ack)
        if answer is not None:
            answer(None)

    def confirm_item(self, item: Item) -> None:
        """Answer a publish that waited in the committer, with the answer prepared on its arrival."""
        self.confirm(item.reply, item.ack, item.answer)

    def _publish(self, reply: bytes, document: bytes) -> None:
        assert self.router is not None
        self.router.publish(reply, b"", b"", document)
