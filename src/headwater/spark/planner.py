"""The planner's view of a stream: its state, and waiting for it to grow.

It lives in Spark's planner process, for the whole life of a query. It keeps one connection and replaces it when it is lost;
a broker that is unavailable for less than `readTimeout` only costs a query time.

Spark polls an idle streaming source continuously. `wait_beyond` is the pause: one pull request of a headers-only consumer
at the end of the stream, answered by the server when a message arrives or after at most `WAIT_SECONDS`. An idle query thus
makes 4 requests per second and one STREAM.INFO every `REFRESH_SECONDS`; `stop` of a query waits for at most `WAIT_SECONDS`.
"""

import logging
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from headwater.client.blocking import BlockingClient
from headwater.errors import JetStreamError, RequestTimeout, TransportError
from headwater.model.subject import is_within, patterns_overlap
from headwater.model.timestamps import parse_time
from headwater.net.blocking import deadline_after
from headwater.spark import connections
from headwater.spark.offsets import StreamState
from headwater.spark.options import SourceOptions
from headwater.spark.range_reader import NO_MESSAGE, create_consumer, stream_state
from headwater.spark.ranges import check_readable
from headwater.spark_runtime.persistence import Persistence, persisted
from headwater.wire.columns import ColumnDecoder
from headwater.wire.server_ops import ServerOpParser

logger = logging.getLogger(__name__)

T = TypeVar("T")

# The functions of a subject transform's destination that make one token; those that split one may make several.
_ONE_TOKEN = re.compile(r"\{\{\s*(?:wildcard|partition|left|right)[^}]*\}\}|\$\d+", re.IGNORECASE)
WAIT_SECONDS = 0.25
REFRESH_SECONDS = 5.0  # the delay until a deleted stream is noticed while it is idle
FIRST_SECONDS = 5.0  # for the one message with which a time is looked up


class StreamPlanner:
    """Queries the state of a stream. Picklable: the connection is left out."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._client: BlockingClient | None = None
        self._sentinel: _Sentinel | None = None
        self._refreshed = 0.0

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_client": None, "_sentinel": None, "_refreshed": 0.0}

    @property
    def requests(self) -> int:
        """The number of requests on the present connection; for tests that bound it."""
        return self._client.requests if self._client else 0

    def state(self) -> StreamState:
        """The present state of the stream. Raises what `stream_state` raises, ConfigError for a stream that cannot be read
        by ranges, and TransportError when no server could be reached for `readTimeout`."""
        state = self._persistently(lambda client: stream_state(client, self._options.stream))
        check_readable(state)
        if not self._refreshed:
            self._warn_of_filters()
        self._refreshed = time.monotonic()
        return state

    def _warn_of_filters(self) -> None:
        """Log filter subjects of which the stream has no message and can get none: a wrong letter looks like none."""
        for subject in self._options.subjects:
            taken = self._persistently(partial(subjects_without, stream=self._options.stream, wanted=subject))
            if taken:
                logger.warning(
                    "filter_without_messages stream=%s subjects=%s: the stream takes %s, and holds none of the filter",
                    self._options.stream,
                    subject,
                    ", ".join(taken),
                )

    def sequence_at(self, moment: datetime) -> int:
        """The sequence of the first message stored at `moment` or later; the end of the stream if there is none."""
        return self._persistently(lambda client: first_since(client, self._options.stream, moment)) or self.state().end

    def wait_beyond(self, end: int) -> StreamState | None:
        """Wait a little for a message at sequence `end` or later; returns the state then, or None without a message."""
        if time.monotonic() - self._refreshed > REFRESH_SECONDS:
            return self.state()
        if not self._options.subjects and (self._sentinel is None or not self._sentinel.stands_at(end)):
            # Behind a batch there is something already, as a rule: one request, where a consumer takes three.
            state = self.state()
            if state.end > end:
                return state
        if not self._persistently(lambda client: self._wait(client, end)):
            return None
        return self.state()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = self._sentinel = None

    def _wait(self, client: BlockingClient, end: int) -> bool:
        if self._sentinel is None or not (self._sentinel.serves(client) and self._sentinel.stands_at(end)):
            if self._sentinel is not None:
                self._sentinel.remove()
            self._sentinel = _Sentinel(client, self._options, end)
        came = self._sentinel.wait()
        if came:
            self._sentinel.remove()
            self._sentinel = None
        return came

    def _persistently(self, ask: Callable[[BlockingClient], T]) -> T:
        """Call `ask`, again on a new connection when it fails, for up to `readTimeout`."""

        def attempt(again: bool) -> T:
            if self._client is None:
                self._client = connections.take(self._options.server, self._options.read_timeout, fresh=True)
            return ask(self._client)

        persistence = Persistence(self._options.read_timeout, f"planner_reconnects stream={self._options.stream}")
        return persisted(persistence, attempt, self.close)


def subjects_without(client: BlockingClient, stream: str, wanted: str) -> list[str]:
    """The subjects under which a stream stores, if the filter `wanted` matches none of them and nothing that it holds; else
    []. A stream that copies another one may get any subject."""
    stored = stored_subjects(client.api(f"STREAM.INFO.{stream}")["config"])
    if any(patterns_overlap(wanted.encode(), each.encode()) for each in stored):
        return []
    held = client.api(f"STREAM.INFO.{stream}", {"subjects_filter": wanted})["state"].get("subjects")
    return [] if held else stored


def stored_subjects(config: Mapping[str, Any]) -> list[str]:
    """Patterns of the subjects that messages of a stream have; `>` where its configuration does not say."""
    taken = [str(subject) for subject in config.get("subjects") or ()]
    transform = config.get("subject_transform") or {}
    if not taken or config.get("mirror") or config.get("sources"):
        return [">"]
    if not transform:
        return taken
    source = str(transform.get("src") or ">").encode()
    made = _ONE_TOKEN.sub("*", str(transform.get("dest")))
    left = [subject for subject in taken if not is_within(subject.encode(), source)]
    return [*left, ">" if "{{" in made else made]


def first_since(client: BlockingClient, stream: str, moment: datetime) -> int:
    """The first sequence stored at `moment` or later, found by a consumer that starts there; 0 when there is none."""
    consumer, pending = create_consumer(client, stream, moment, headers_only=True)
    if not pending:
        _check_none_since(client, stream, moment)
    decoder = ColumnDecoder(0, 1, 1 << 62, with_map=False, with_raw=False)
    if pending:
        sid, inbox = client.subscribe()
        decoder.resubscribe(sid)
        parser = ServerOpParser(decoder)
        deadline = deadline_after(FIRST_SECONDS)
        client.pull(stream, consumer, inbox, 1, FIRST_SECONDS)
        while not decoder.received and not decoder.statuses and time.monotonic() < deadline:
            client.feed(parser, deadline)
            client.pong(decoder.take_pings())
            if decoder.errors or decoder.violation:
                raise TransportError(f"looking for a time in {stream} failed: {decoder.errors or decoder.violation}")
        client.unsubscribe(sid)
        if not decoder.received:
            raise RequestTimeout(f"{stream} did not send its first message since {moment}", value=stream)
    client.forget_consumer(stream, consumer)
    return decoder.position


def _check_none_since(client: BlockingClient, stream: str, moment: datetime) -> None:
    """Raise TransportError when the stream's leader has a message since `moment`, which a replica may not have yet."""
    if stream_state(client, stream).replicas == 1:
        return
    try:
        last = client.api(f"STREAM.MSG.GET.{stream}", {"last_by_subj": ">"})["message"]
    except JetStreamError as error:
        if error.err_code != NO_MESSAGE:
            raise
        return
    if parse_time(str(last["time"])) >= round(moment.timestamp() * 1e6) * 1000:
        raise TransportError(f"the consumer's server has not caught up: {stream} has messages since {moment}")


class _Sentinel:
    """A consumer at the end of the stream that delivers the first new message."""

    def __init__(self, client: BlockingClient, options: SourceOptions, end: int) -> None:
        self._client = client
        self._stream = options.stream
        self._end = end
        self._consumer, pending = create_consumer(client, options.stream, end, options.subjects, headers_only=True)
        self._sid, self._inbox = client.subscribe()
        self._decoder = ColumnDecoder(self._sid, end, end + 1, with_map=False, with_raw=False)
        self._parser = ServerOpParser(self._decoder)
        self._came = pending > 0

    def serves(self, client: BlockingClient) -> bool:
        return self._client is client

    def stands_at(self, end: int) -> bool:
        return self._end == end

    def wait(self) -> bool:
        """One pull request of `WAIT_SECONDS`; returns whether a message came."""
        if self._came:
            return True
        self._client.pull(self._stream, self._consumer, self._inbox, 1, WAIT_SECONDS)
        # The server answers with a status when the time has passed; this deadline is for a server that does not.
        deadline = deadline_after(2 * WAIT_SECONDS)
        decoder = self._decoder
        while not decoder.received and not decoder.statuses and time.monotonic() < deadline:
            self._client.feed(self._parser, deadline)
            self._client.pong(decoder.take_pings())
            if decoder.errors or decoder.violation:
                raise TransportError(f"waiting on {self._stream} failed: {decoder.errors or decoder.violation}")
        statuses = [status.split(b" ", 2)[1][:3] for status in decoder.statuses]
        decoder.statuses.clear()
        if any(code != b"408" for code in statuses):
            raise TransportError(f"the consumer at the end of {self._stream} is gone ({statuses[0].decode()})")
        return decoder.received > 0

    def remove(self) -> None:
        """Delete the consumer without waiting; if that fails, the server deletes it later."""
        try:
            self._client.unsubscribe(self._sid)
            self._client.forget_consumer(self._stream, self._consumer)
        except (TransportError, JetStreamError) as error:
            logger.debug("sentinel_not_removed stream=%s: %s", self._stream, error)
