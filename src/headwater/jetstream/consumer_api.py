"""The API requests about consumers: `$JS.API.CONSUMER.…`, except MSG.NEXT, which goes directly to its consumer.

There are three ways to create one: by the name in the subject (with or without a filter behind it), by the older
subject for durable consumers, and by the oldest, nameless one for ephemeral consumers. Creating one that exists
updates it.
"""

import os
from typing import assert_never

import msgspec

from headwater.jetstream.consumer_registry import ConsumerRegistry, count_pending
from headwater.jetstream.delivering import DeliveringConsumer
from headwater.jetstream.read_ahead import filter_of
from headwater.jetstream.stream import Stream
from headwater.jetstream.stream_registry import StreamRegistry
from headwater.jetstream_documents.answers import (
    TYPE_PREFIX,
    Answer,
    ConsumerAnswer,
    ConsumerListAnswer,
    ConsumerNamesAnswer,
    PauseAnswer,
    SuccessAnswer,
)
from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_documents.consumer_rules import (
    GROUP_NAME,
    check_beside,
    check_name,
    check_pedantic,
    check_policy,
    check_queue,
    check_reset,
    checked,
    filters_of,
    for_copy,
    is_copying,
    keep_start,
    required_level,
    updated,
    with_patience,
)
from headwater.jetstream_documents.consumers import ConsumerConfig, ConsumerInfo
from headwater.jetstream_documents.requests import (
    CreateConsumerRequest,
    ListRequest,
    PauseRequest,
    ResetRequest,
    UnpinRequest,
)
from headwater.jetstream_documents.stream_rules import stored_metadata
from headwater.jetstream_documents.strict_reading import decode_document, decode_request, is_empty_request
from headwater.jetstream_state.consumer import Consumer
from headwater.jetstream_timing.looking import last_sequences
from headwater.model.short_hash import short_name
from headwater.model.timestamps import ZERO, parse_time

NAMES_PAGE = 1024
LIST_PAGE = 256
EPHEMERAL_NAME_LENGTH = 8
MOST_COUNTS = 5


class ConsumerApi:
    """Handlers of requests about consumers. `default_max_consumers`: the limit of a stream when neither its configuration
    nor its account sets one."""

    def __init__(self, streams: StreamRegistry, consumers: ConsumerRegistry, default_max_consumers: int) -> None:
        self._streams = streams
        self._consumers = consumers
        self._default_max_consumers = default_max_consumers

    async def create(self, names: list[str], payload: bytes) -> ConsumerAnswer:
        """`CONSUMER.CREATE.<stream>[.<name>[.<filter subject>]]`."""
        request = _request(names[0], payload)
        config = request.config
        if len(names) == 1:
            _check_separators(config.name)
            if config.durable_name:
                raise api_error("ephemeral_with_durable_name")
            return await self._create(names[0], config.name, request)
        name, subject = names[1], ".".join(names[2:])
        _check_separators(name)
        if config.durable_name and config.durable_name != name:
            raise api_error("durable_name_mismatch")
        config.name = name
        if subject:
            if config.filter_subjects:
                raise api_error("filters_with_subject_api")
            if subject != config.filter_subject:
                raise api_error("filter_not_in_subject")
        return await self._create(names[0], name, request)

    async def create_durable(self, names: list[str], payload: bytes) -> ConsumerAnswer:
        """`CONSUMER.DURABLE.CREATE.<stream>.<name>`."""
        request = _request(names[0], payload)
        config = request.config
        _check_separators(names[1])
        if not config.durable_name:
            raise api_error("durable_name_not_set")
        if config.durable_name != names[1]:
            raise api_error("durable_name_mismatch")
        config.name = names[1]
        return await self._create(names[0], names[1], request)

    def info(self, names: list[str], payload: bytes) -> ConsumerAnswer:
        if not is_empty_request(payload):
            raise api_error("not_empty_request")
        return _answer(self._consumer(names).info(), "consumer_info_response")

    async def delete(self, names: list[str], payload: bytes) -> SuccessAnswer:
        if not is_empty_request(payload):
            raise api_error("not_empty_request")
        await self._consumers.delete(self._streams.stream(names[0]), self._consumer(names))
        return SuccessAnswer(type=TYPE_PREFIX + "consumer_delete_response", success=True)

    def list_names(self, names: list[str], payload: bytes) -> ConsumerNamesAnswer:
        found, offset, page = self._page(names[0], payload, NAMES_PAGE)
        return ConsumerNamesAnswer(
            type=TYPE_PREFIX + "consumer_names_response",
            total=len(found),
            offset=offset,
            limit=NAMES_PAGE,
            consumers=[consumer.name for consumer in page],
        )

    def list_infos(self, names: list[str], payload: bytes) -> ConsumerListAnswer:
        found, offset, page = self._page(names[0], payload, LIST_PAGE)
        return ConsumerListAnswer(
            type=TYPE_PREFIX + "consumer_list_response",
            total=len(found),
            offset=offset,
            limit=LIST_PAGE,
            consumers=[consumer.info(full=False) for consumer in page],
        )

    async def pause(self, names: list[str], payload: bytes) -> PauseAnswer:
        from headwater.jetstream_documents.given_times import pause_time  # here: a start does not need it

        until = pause_time(decode_document(payload, PauseRequest).pause_until)
        stream, consumer = self._streams.stream(names[0]), self._consumer(names)
        before = consumer.config.pause_until
        config = msgspec.structs.replace(consumer.config, pause_until=until)
        config.metadata = stored_metadata(config.metadata, required_level(config))
        consumer.reconfigure(config)
        await self._consumers.save(stream, consumer)
        if (until or ZERO) != (before or ZERO):
            self._consumers.advise_pause(stream, consumer)
        answer = PauseAnswer(type=TYPE_PREFIX + "consumer_pause_response", pause_until=config.pause_until or ZERO)
        remaining = consumer.pause_remaining
        if remaining:
            answer.paused, answer.pause_remaining = True, remaining
        return answer

    async def reset(self, names: list[str], payload: bytes) -> ConsumerAnswer:
        stream, consumer = self._streams.stream(names[0]), self._consumer(names)
        try:
            request = msgspec.json.decode(payload or b"{}", type=ResetRequest)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise api_error("invalid_json", reason=str(error)) from error
        if request.seq:
            at = consumer.config.opt_start_time
            check_reset(consumer.config, request.seq, stream.contents.sequence_at_time(parse_time(at)) if at else 0)
        sequence = consumer.reset(request.seq)
        await _count_again(stream, consumer)
        answer = _answer(consumer.info(), "consumer_reset_response")
        answer.reset_seq = sequence
        await self._consumers.save(stream, consumer)
        return answer

    def unpin(self, names: list[str], payload: bytes) -> Answer:
        """Unpin the client of a priority group, if one is pinned."""
        group = decode_request(payload, UnpinRequest).group
        if not group:
            raise api_error("invalid_json", reason="consumer group not specified")
        if GROUP_NAME.fullmatch(group) is None:
            raise api_error("group_name_invalid")
        if not self._consumer(names).unpin(group):
            raise api_error("no_such_group")
        return Answer(type=TYPE_PREFIX + "consumer_unpin_response")

    def no_cluster(self, names: list[str], payload: bytes) -> SuccessAnswer:
        raise api_error("cluster_required")

    # ── inside ──

    async def _create(self, stream_name: str, name: str, request: CreateConsumerRequest) -> ConsumerAnswer:
        if request.config.num_replicas > 1:
            raise api_error("too_many_replicas")
        stream = self._streams.stream(stream_name)
        if request.config.direct and request.config.sourcing and name:
            name = for_copy(request.config, stream.config.retention, _ephemeral_name(stream))
        existing = stream.consumers.get(name)
        if existing is not None:
            request.config.pause_until = existing.config.pause_until  # CONSUMER.PAUSE alone changes it
            if existing.config.sourcing:
                keep_start(request.config, existing.config)
        most_batch = self._streams.settings.server.max_request_batch
        if request.pedantic:
            check_pedantic(request.config, stream.config, most_batch)
        config = checked(request.config, stream.config, self._streams.settings.max_ack_pending, most_batch)
        if existing is not None:
            await self._change(stream, existing, config, request.action)
            if config.sourcing:
                existing.reset(0)
                await _count_again(stream, existing)
            return _answer(existing.info(), "consumer_create_response")
        if request.action == "update":
            raise api_error("consumer_does_not_exist")
        self._check_new(config, stream)
        config = with_patience(config, durable=bool(config.durable_name))
        if not name:
            name = _ephemeral_name(stream)
        else:
            check_name(name)
        state = await new_state(config, stream)
        state.num_pending = len(state.selected) + await count_pending(stream, state.position, filter_of(config))
        consumer = await self._consumers.add(stream, name, state)
        answer = _answer(consumer.info(), "consumer_create_response")
        consumer.start()
        return answer

    def _check_new(self, config: ConsumerConfig, stream: Stream) -> None:
        """Check that the stream may have one more consumer and, if it is a work queue, that no other has this filter."""
        most, of_account = stream.config.max_consumers, self._streams.settings.limits.max_consumers
        if most <= 0 or 0 < of_account < most:
            most = of_account if of_account > 0 else self._default_max_consumers
        others = [other.config for other in stream.consumers.values() if not is_copying(other.config)]
        if 0 < most <= len(others):
            raise api_error("maximum_consumers")
        if stream.config.retention == "workqueue" and not is_copying(config):
            check_queue(config)
            check_beside(config, others)

    async def _change(self, stream: Stream, existing: DeliveringConsumer, config: ConsumerConfig, action: str) -> None:
        if action == "create" and config != existing.config:
            raise api_error("consumer_exists")
        if stream.config.retention == "workqueue" and not is_copying(config):
            others = [other.config for other in stream.consumers.values() if other is not existing]
            check_beside(config, others, new=False)
        changed = updated(existing.config, config)
        if existing.has_interest and not config.sourcing and config.deliver_subject != existing.config.deliver_subject:
            raise api_error("consumer_name_in_use")
        if changed.inactive_threshold != existing.config.inactive_threshold:
            changed = with_patience(changed, durable=bool(changed.durable_name))
        await self._update(stream, existing, changed)

    async def _update(self, stream: Stream, consumer: DeliveringConsumer, config: ConsumerConfig) -> None:
        old = consumer.config
        if config == old:
            return
        if filters_of(config) != filters_of(old):
            consumer.reconfigure(config)
            await _count_again(stream, consumer)
        else:
            consumer.reconfigure(config)
        await self._consumers.save(stream, consumer)

    def _consumer(self, names: list[str]) -> DeliveringConsumer:
        consumer = self._streams.stream(names[0]).consumers.get(names[1])
        if consumer is None:
            raise api_error("consumer_not_found")
        return consumer

    def _page(
        self, stream: str, payload: bytes, size: int
    ) -> tuple[list[DeliveringConsumer], int, list[DeliveringConsumer]]:
        request = decode_document(payload, ListRequest)
        consumers = sorted(self._streams.stream(stream).consumers.items())
        found = [consumer for _, consumer in consumers if not consumer.config.direct]
        offset = min(max(request.offset, 0), len(found))
        return found, offset, found[offset : offset + size]


async def _count_again(stream: Stream, consumer: DeliveringConsumer) -> None:
    """Recount what is pending for a running consumer. If it has delivered meanwhile, count again from its new position, a
    few times; after that the number may be too high, never too low, and is corrected at the end of the log."""
    state = consumer.state
    for _ in range(MOST_COUNTS):
        position = state.position
        pending = await count_pending(stream, position, consumer.filter)
        if state.position <= position:
            break
    state.num_pending = len(state.selected) + pending


async def new_state(config: ConsumerConfig, stream: Stream) -> Consumer:
    """The initial state of a new consumer, from its deliver policy."""
    wanted = filter_of(config)
    behind = stream.last_sequence + 1
    first = max(stream.first_sequence, 1)
    match config.deliver_policy:
        case "all":
            return Consumer(config, first)
        case "new":
            return Consumer(config, behind)
        case "last":
            last = stream.last_sequence if wanted is None else max(stream.subjects.lasts(wanted), default=0)
            return Consumer(config, max(last, first))
        case "last_per_subject":
            assert wanted is not None  # checked
            if stream.config.max_msgs_per_subject == 1:  # every message is the last of its subject
                return Consumer(config, first)
            lasts = await last_sequences(stream.subjects, wanted, behind)
            return Consumer(config, behind, lasts) if lasts else Consumer(config, max(stream.last_sequence, first))
        case "by_start_sequence":
            return Consumer(config, max(config.opt_start_seq, first))
        case "by_start_time":
            assert config.opt_start_time is not None  # checked
            return Consumer(config, stream.contents.sequence_at_time(parse_time(config.opt_start_time)))
        case _:
            assert_never(config.deliver_policy)


def _request(stream: str, payload: bytes) -> CreateConsumerRequest:
    from headwater.jetstream_documents.given_times import pause_time, start_time  # here: a start does not need it

    request = decode_request(payload, CreateConsumerRequest)
    check_policy(request.config)
    request.config.pause_until = pause_time(request.config.pause_until)
    request.config.opt_start_time = start_time(request.config.opt_start_time)
    if request.stream_name != stream:
        raise api_error("stream_name_mismatch")
    return request


def _check_separators(name: str) -> None:
    if "/" in name or "\\" in name:
        raise api_error("consumer_name_with_separator")


def _ephemeral_name(stream: Stream) -> str:
    while True:
        name = short_name(os.urandom(EPHEMERAL_NAME_LENGTH))
        if name not in stream.consumers:
            return name


def _answer(info: ConsumerInfo, kind: str) -> ConsumerAnswer:
    return ConsumerAnswer(type=TYPE_PREFIX + kind, **msgspec.structs.asdict(info))
