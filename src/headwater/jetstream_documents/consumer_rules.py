"""The rules for consumer configurations: nats-server's rules and defaults, and a refusal of unsupported features.

`checked` returns the configuration that is stored and shown; `updated` the one after a second CREATE for the same name.
The order of the checks is nats-server's. A deliver subject makes it a push consumer.
"""

import re
from collections.abc import Iterable

import msgspec

from headwater.errors import JetStreamError
from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.stream_rules import (
    MAX_DESCRIPTION,
    MAX_METADATA,
    consumer_limits_of,
    is_asset_name,
    metadata_size,
    stored_metadata,
)
from headwater.jetstream_documents.streams import StreamConfig
from headwater.model.subject import is_valid_subject, is_within, patterns_overlap
from headwater.model.subject_match import matches
from headwater.model.timestamps import SECOND, ZERO, format_duration

DEFAULT_PIN = 120 * SECOND
PRIORITY_POLICIES = ("overflow", "pinned_client", "prioritized")
GROUP_NAME = re.compile(r"[a-zA-Z0-9/_=-]{1,16}", re.ASCII)
MAX_NAME = 255  # characters
DEFAULT_ACK_WAIT = 30 * SECOND
DEFAULT_MAX_ACK_PENDING = 1000
DEFAULT_MAX_WAITING = 512
DEFAULT_INACTIVE_THRESHOLD = 5 * SECOND  # of ephemeral consumers
SMALLEST_MAX_EXPIRES = SECOND // 1000
SMALLEST_HEARTBEAT = SECOND // 10

# Fields that an update may not change, in nats-server's order and words.
_FIXED = {
    "deliver_policy": "deliver policy",
    "mem_storage": "storage type",
    "direct": "direct",
    "opt_start_seq": "start sequence",
    "opt_start_time": "start time",
    "ack_policy": "ack policy",
    "replay_policy": "replay policy",
    "sourcing": "sourcing",
    "idle_heartbeat": "heart beats",
    "flow_control": "flow control",
}

_POLICY_TEXT = {
    "all": "deliver all",
    "last": "deliver last",
    "new": "deliver new",
    "last_per_subject": "deliver last per subject",
}


def checked(config: ConsumerConfig, stream: StreamConfig, most_pending: int = 0, most_batch: int = 0) -> ConsumerConfig:
    """`config` with defaults filled in. The caller has chosen `config.name`. `most_pending`, `most_batch`: the limits
    of account and server for max_ack_pending and max_batch, 0 for none. Raises JetStreamError."""
    check_policy(config)
    complete = _with_defaults(config, stream, most_pending)
    if most_batch > 0 and not complete.deliver_subject:
        if complete.max_batch > most_batch:
            raise api_error("max_request_batch_excess", limit=most_batch)
        complete.max_batch = complete.max_batch or most_batch
    _check_names(complete)
    _check_replicas(complete, stream)
    _check_acks(complete)
    _check_flow_acks(complete, config)
    if complete.deliver_subject:
        _check_push(complete, stream)
    else:
        _check_pull(complete, stream)
    _check_limits(complete, stream, most_pending)
    _check_filters(complete)
    _check_delivery(complete)
    _check_rest(complete)
    _check_priority(complete)
    return complete


def check_policy(config: ConsumerConfig) -> None:
    """Raises JetStreamError for a priority policy that does not exist: nats-server finds it while it reads the JSON."""
    if config.priority_policy not in ("", "none", *PRIORITY_POLICIES):
        raise api_error("invalid_json", reason=f'unknown priority policy: "{config.priority_policy}"')


def with_patience(config: ConsumerConfig, *, durable: bool) -> ConsumerConfig:
    """`config` with the default inactive threshold if it sets none and the consumer is ephemeral."""
    if config.inactive_threshold > 0 or durable:
        return config
    return msgspec.structs.replace(config, inactive_threshold=DEFAULT_INACTIVE_THRESHOLD)


def check_pedantic(config: ConsumerConfig, stream: StreamConfig, most_batch: int = 0) -> None:
    """Refuse settings that would be corrected or filled in from the stream. Raises JetStreamError 10157."""
    limits = consumer_limits_of(stream)
    complaints = {
        "max_deliver must be set to -1": config.max_deliver < -1,
        "max_waiting must not be negative": config.max_waiting < 0,
        "max_ack_pending must be set to -1": config.max_ack_pending < -1,
        "max_batch must not be negative": config.max_batch < 0,
        "max_expires must not be negative": config.max_expires < 0,
        "max_bytes must not be negative": config.max_bytes < 0,
        "idle_heartbeat must not be negative": config.idle_heartbeat < 0,
        "inactive_threshold must not be negative": config.inactive_threshold < 0,
        "priority_timeout must not be negative": config.priority_timeout < 0,
        "first backoff value has to equal batch AckWait": (config.backoff or [])[:1] not in ([], [config.ack_wait]),
        "max_ack_pending must be set if it's configured in stream limits": (
            config.max_ack_pending == 0 < limits.max_ack_pending
        ),
        "inactive_threshold must be set if it's configured in stream limits": (
            config.inactive_threshold == 0 < limits.inactive_threshold
        ),
    }
    if config.max_batch == 0 < most_batch and not config.deliver_subject:
        raise api_error("pedantic", reason="max_request_batch must be set if it's JetStream limits are set")
    for complaint, holds in complaints.items():
        if holds:
            raise api_error("pedantic", reason=complaint)


def _with_defaults(config: ConsumerConfig, stream: StreamConfig, most_pending: int) -> ConsumerConfig:
    with_acks, by_flow = config.ack_policy != "none", config.ack_policy == "flow_control"
    ack_wait = config.ack_wait or (DEFAULT_ACK_WAIT if with_acks and not by_flow else 0)
    pending = max(config.max_ack_pending, -1) or consumer_limits_of(stream).max_ack_pending
    if pending == 0 and with_acks:
        pending = min(DEFAULT_MAX_ACK_PENDING, most_pending) if most_pending > 0 else DEFAULT_MAX_ACK_PENDING
    threshold = max(config.inactive_threshold, 0) or consumer_limits_of(stream).inactive_threshold
    waiting = 0 if config.deliver_subject else DEFAULT_MAX_WAITING
    return msgspec.structs.replace(
        config,
        ack_wait=config.backoff[0] if config.backoff else ack_wait,
        backoff=config.backoff or None,
        filter_subjects=config.filter_subjects or None,
        priority_groups=config.priority_groups or None,
        max_deliver=config.max_deliver if config.max_deliver > 0 else -1,
        max_ack_pending=pending,
        max_waiting=max(config.max_waiting, 0) or waiting,
        max_batch=max(config.max_batch, 0),
        max_expires=max(config.max_expires, 0),
        max_bytes=max(config.max_bytes, 0),
        idle_heartbeat=SECOND if by_flow else max(config.idle_heartbeat, 0),
        flow_control=by_flow or config.flow_control,
        inactive_threshold=threshold,
        priority_policy="" if config.priority_policy == "none" else config.priority_policy,
        priority_timeout=max(config.priority_timeout, 0)
        or (DEFAULT_PIN if config.priority_policy == "pinned_client" else 0),
        metadata=stored_metadata(config.metadata, required_level(config)),
    )


def is_copying(config: ConsumerConfig) -> bool:
    """Whether the consumer serves the copy of another stream or server: it does not count towards limits and is exempt
    from the rules of a work queue."""
    return config.direct or config.sourcing


def for_copy(config: ConsumerConfig, retention: str, fresh: str) -> str:
    """Adapt the configuration requested by a copying stream to its origin; returns the consumer's name. An origin that
    keeps messages until they are acknowledged gets a durable consumer with acknowledgements; any other a new consumer
    for each try. `fresh`: an unused name."""
    if retention == "limits":
        config.name = f"{config.name}-{fresh}"
    else:
        config.direct = False
        config.durable_name = config.name
        config.ack_policy = "flow_control"
        config.ack_wait = config.max_deliver = config.inactive_threshold = 0
    return config.name


def keep_start(config: ConsumerConfig, existing: ConsumerConfig) -> None:
    """A copy that reconnects continues where its acknowledgements end."""
    config.deliver_policy = existing.deliver_policy
    config.opt_start_seq, config.opt_start_time = existing.opt_start_seq, existing.opt_start_time


def check_reset(config: ConsumerConfig, sequence: int, start: int) -> None:
    """Check that the consumer may be reset to `sequence`. `start`: the sequence of its start time. Raises
    JetStreamError."""
    match config.deliver_policy:
        case "all":
            return
        case "by_start_sequence" if sequence < config.opt_start_seq:
            raise api_error("invalid_reset", reason="below start seq")
        case "by_start_time" if sequence < start:
            raise api_error("invalid_reset", reason="below start time")
        case "by_start_sequence" | "by_start_time":
            return
        case _:
            raise api_error("invalid_reset", reason="not allowed")


def check_queue(config: ConsumerConfig) -> None:
    """Check a new consumer of a work queue. Raises JetStreamError."""
    if config.ack_policy not in ("explicit", "flow_control"):
        raise api_error("workqueue_explicit_ack")
    if config.deliver_policy != "all":
        raise api_error("workqueue_deliver_all")


def check_beside(config: ConsumerConfig, others: Iterable[ConsumerConfig], *, new: bool = True) -> None:
    """Check that in a work queue each message has only one consumer. `others`: the existing consumers without this one.
    Raises JetStreamError."""
    filters = filters_of(config)
    for other in others:
        theirs = filters_of(other)
        if not filters and new:
            raise api_error("workqueue_two_consumers")
        if filters and (not theirs or any(patterns_overlap(ours, own) for ours in filters for own in theirs)):
            raise api_error("workqueue_filter_not_unique")


def updated(old: ConsumerConfig, new: ConsumerConfig) -> ConsumerConfig:
    """The configuration when `new` (already checked) replaces `old`. Raises JetStreamError 10012 for a field that must
    not change."""
    for name, wording in _FIXED.items():
        if getattr(old, name) != getattr(new, name):
            raise api_error("consumer_create", reason=f"{wording} can not be updated")
    if bool(old.deliver_subject) != bool(new.deliver_subject):
        kinds = ("push", "pull") if old.deliver_subject else ("pull", "push")
        raise api_error("consumer_create", reason="can not update {} consumer to {} based".format(*kinds))
    if old.max_waiting != new.max_waiting:
        raise api_error("consumer_create", reason="max waiting can not be updated")
    return new


def filters_of(config: ConsumerConfig) -> list[bytes]:
    """The filter patterns, of which a subject must match one; empty: every message."""
    subjects = [config.filter_subject] if config.filter_subject else config.filter_subjects or []
    return [subject.encode() for subject in subjects]


def check_name(name: str) -> None:
    """Raises JetStreamError for an invalid consumer name."""
    if len(name) > MAX_NAME:
        raise api_error("consumer_name_too_long", limit=MAX_NAME)
    if not is_asset_name(name):
        raise api_error("consumer_name_invalid")


def _check_names(config: ConsumerConfig) -> None:
    for kind, name in (("consumer", config.name), ("consumer durable", config.durable_name)):
        if name and not is_asset_name(name):
            raise api_error("stream_config", reason=f"{kind} name can not contain '.', '*', '>', '\\', '/'")


def _check_replicas(config: ConsumerConfig, stream: StreamConfig) -> None:
    if config.num_replicas > stream.num_replicas:
        raise api_error("replicas_exceed_stream")
    if config.num_replicas < 0:
        raise api_error("replicas_negative")


def _check_acks(config: ConsumerConfig) -> None:
    if any(wait < 0 for wait in config.backoff or ()):
        raise api_error("backoff_negative")
    if config.ack_wait < 0:
        raise api_error("ack_wait_negative")
    if config.backoff and 0 < config.max_deliver < len(config.backoff):
        raise api_error("max_deliver_below_backoff")
    if len(config.description.encode()) > MAX_DESCRIPTION:
        raise api_error("description_too_long", limit=MAX_DESCRIPTION)


def _check_flow_acks(config: ConsumerConfig, requested: ConsumerConfig) -> None:
    """Check the ack policy `flow_control`, with which answers to flow-control requests acknowledge."""
    if config.ack_policy != "flow_control":
        return
    if not config.deliver_subject:
        raise api_error("flow_acks_need_push")
    if config.max_ack_pending <= 0:
        raise api_error("flow_acks_need_pending")
    if config.ack_wait or config.backoff:
        raise api_error("flow_acks_without_wait")
    if requested.max_deliver > 0:
        raise api_error("flow_acks_without_max_deliver")


def _check_push(config: ConsumerConfig, stream: StreamConfig) -> None:
    target = config.deliver_subject.encode()
    if b"*" in target.split(b".") or b">" in target.split(b"."):
        raise api_error("deliver_to_wildcards")
    if not is_valid_subject(target):
        raise api_error("deliver_subject_invalid")
    if any(matches(subject.encode(), target) for subject in stream.subjects):
        raise api_error("deliver_cycle")
    if config.max_waiting:
        raise api_error("push_max_waiting")
    if config.max_ack_pending > 0 and config.ack_policy == "none":
        raise api_error("max_ack_pending_without_acks")
    if 0 < config.idle_heartbeat < SMALLEST_HEARTBEAT:
        raise api_error("heartbeat_too_small")


def _check_pull(config: ConsumerConfig, stream: StreamConfig) -> None:
    if stream.retention == "workqueue" and config.ack_policy == "none":
        raise api_error("workqueue_needs_explicit")
    if config.rate_limit_bps:
        raise api_error("pull_with_rate_limit")
    if config.idle_heartbeat:
        raise api_error("heartbeat_needs_push")
    if config.flow_control:
        raise api_error("flow_control_needs_push")
    if 0 < config.max_expires < SMALLEST_MAX_EXPIRES:
        raise api_error("max_expires_too_small")


def _check_limits(config: ConsumerConfig, stream: StreamConfig, most_pending: int) -> None:
    for limit in (most_pending, consumer_limits_of(stream).max_ack_pending):
        if 0 < limit < config.max_ack_pending:
            raise api_error("max_ack_pending_excess", limit=limit)
    longest = consumer_limits_of(stream).inactive_threshold
    if 0 < longest < config.inactive_threshold:
        raise api_error("inactive_threshold_excess", limit=format_duration(longest))


def _check_filters(config: ConsumerConfig) -> None:
    if config.direct and not config.deliver_subject:
        raise api_error("direct_needs_push")
    if config.direct and config.durable_name:
        raise api_error("direct_needs_ephemeral")
    if config.filter_subject and config.filter_subjects:
        raise api_error("two_kinds_of_filter")
    filters = filters_of(config)
    if config.filter_subject and not is_valid_subject(filters[0]):
        raise api_error("stream_config", reason="invalid subject")
    if config.filter_subjects and "" in config.filter_subjects:
        raise api_error("filter_empty")
    for position, subject in enumerate(filters):
        if not is_valid_subject(subject):
            raise api_error("stream_config", reason="invalid subject")
        others = filters[:position] + filters[position + 1 :]
        if any(is_within(subject, other) for other in others):
            raise api_error("filters_overlap")


def required_level(config: ConsumerConfig) -> int:
    """The API level that a server needs for this configuration."""
    if config.ack_policy == "flow_control":
        return 4
    return int(config.pause_until not in (None, ZERO) or config.priority_policy not in ("", "none"))


def sampled_percent(sample_freq: str) -> int:
    """The percentage of acknowledgements with a metric, from a setting that was checked."""
    return int(sample_freq.removesuffix("%")) if sample_freq else 0


def _check_rest(config: ConsumerConfig) -> None:
    if config.sample_freq:
        number = config.sample_freq.removesuffix("%")
        if not (number.isascii() and number[number[:1] in ("+", "-") :].isdigit()):
            raise api_error("invalid_sampling", reason=f'strconv.Atoi: parsing "{number}": invalid syntax')
        if int(number) < 0:
            raise api_error("invalid_sampling", reason="<nil>")
    if config.flow_control and not config.idle_heartbeat:
        raise api_error("flow_control_needs_heartbeats")
    if config.durable_name and config.name and config.name != config.durable_name:
        raise api_error("name_is_not_durable_name")
    if metadata_size(config.metadata) > MAX_METADATA:
        raise api_error("consumer_metadata_too_large", limit=f"{MAX_METADATA >> 10}KB")


def _check_priority(config: ConsumerConfig) -> None:
    if not config.priority_policy:
        if config.priority_groups:
            raise api_error("priority_group_without_policy")
        if config.priority_timeout:
            raise api_error("pinned_ttl_without_policy")
        return
    if not config.priority_groups:
        raise api_error("priority_without_group")
    if config.deliver_subject:
        raise api_error("priority_with_push")
    for group in config.priority_groups:
        if not group:
            raise api_error("group_name_empty")
        if GROUP_NAME.fullmatch(group) is None:
            raise api_error("group_name_invalid")


def _check_delivery(config: ConsumerConfig) -> None:
    policy, sequence, time = config.deliver_policy, config.opt_start_seq, config.opt_start_time
    match policy:
        case "by_start_sequence":
            wording = "deliver by start sequence"
            if not sequence:
                raise _policy(f"{wording}, but optional start sequence is not set")
            if time:
                raise _policy(f"{wording}, but optional start time is also set")
        case "by_start_time":
            wording = "deliver by start time"
            if not time:
                raise _policy(f"{wording}, but optional start time is not set")
            if sequence:  # "start start" is nats-server's
                raise _policy(f"{wording}, but optional start start sequence is also set")
        case _:
            wording = _POLICY_TEXT[policy]
            if sequence:
                raise _policy(f"{wording}, but optional start sequence is also set")
            if time:
                raise _policy(f"{wording}, but optional start time is also set")
            if policy == "last_per_subject" and not filters_of(config):
                raise _policy(f"{wording}, but optional filter subject is not set")


def _policy(reason: str) -> JetStreamError:
    return api_error("invalid_policy", reason=f"consumer delivery policy is {reason}")
