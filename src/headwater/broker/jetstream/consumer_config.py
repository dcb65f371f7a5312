"""What a consumer may be: nats-server's rules and defaults, and a plain refusal of what is not built.

`checked` gives the configuration that is stored and shown; `updated` the one after a second CREATE for the same name.
The order of the checks is nats-server's. A deliver subject makes it a push consumer. Priority groups are refused by name.
"""

from collections.abc import Iterable

import msgspec

from headwater.broker.jetstream.api_errors import api_error
from headwater.broker.jetstream.api_types import ConsumerConfig, StreamConfig
from headwater.broker.jetstream.stream_config import MAX_DESCRIPTION, MAX_REPLICAS, stored_metadata
from headwater.broker.jetstream.timestamps import SECOND, ZERO, parse_time
from headwater.errors import JetStreamError
from headwater.model.subject import is_literal, is_valid_subject, patterns_overlap

MAX_NAME = 255  # characters
DEFAULT_ACK_WAIT = 30 * SECOND
DEFAULT_MAX_ACK_PENDING = 1000
DEFAULT_MAX_WAITING = 512
DEFAULT_INACTIVE_THRESHOLD = 5 * SECOND  # of ephemeral consumers
SMALLEST_MAX_EXPIRES = SECOND // 1000
SMALLEST_HEARTBEAT = SECOND // 10

_POLICY_TEXT = {
    "all": "deliver all",
    "last": "deliver last",
    "new": "deliver new",
    "last_per_subject": "deliver last per subject",
}


def checked(config: ConsumerConfig, stream: StreamConfig) -> ConsumerConfig:
    """`config` with defaults filled in. `config.name` is settled by the caller. Raises JetStreamError."""
    _check_not_built(config)
    _check_replicas(config.num_replicas)
    _check_common(config)
    if config.deliver_subject:
        _check_push(config, stream)
    else:
        _check_pull(config, stream)
    _check_filters(config)
    _check_delivery(config)
    _check_retention(config, stream)
    with_acks = config.ack_policy != "none"
    ack_wait = config.backoff[0] if config.backoff else config.ack_wait
    pending = max(config.max_ack_pending, -1)
    if pending == 0 and with_acks:
        pending = stream.consumer_limits.max_ack_pending or DEFAULT_MAX_ACK_PENDING
    threshold = max(config.inactive_threshold, 0) or stream.consumer_limits.inactive_threshold
    waiting = 0 if config.deliver_subject else DEFAULT_MAX_WAITING
    level = 1 if config.pause_until not in ("", ZERO) else 0
    return msgspec.structs.replace(
        config,
        ack_wait=ack_wait or (DEFAULT_ACK_WAIT if with_acks else 0),
        max_deliver=config.max_deliver if config.max_deliver > 0 else -1,
        max_ack_pending=pending,
        max_waiting=config.max_waiting if config.max_waiting > 0 else waiting,
        max_batch=max(config.max_batch, 0),
        max_expires=max(config.max_expires, 0),
        max_bytes=max(config.max_bytes, 0),
        inactive_threshold=threshold or (0 if config.durable_name else DEFAULT_INACTIVE_THRESHOLD),
        metadata=stored_metadata(config.metadata, level),
    )


def check_beside(config: ConsumerConfig, others: Iterable[ConsumerConfig]) -> None:
    """In a work queue each message has one consumer. `others`: those that are there. Raises JetStreamError."""
    filters = filters_of(config)
    for other in others:
        theirs = filters_of(other)
        if not filters and not theirs:
            raise api_error("workqueue_two_consumers")
        if not filters or not theirs or any(patterns_overlap(ours, own) for ours in filters for own in theirs):
            raise api_error("workqueue_filter_not_unique")


def updated(old: ConsumerConfig, new: ConsumerConfig) -> ConsumerConfig:
    """`new` (already checked) in place of `old`. Raises JetStreamError 10012 for what must not change."""
    fixed = {
        "deliver_policy": "deliver policy",
        "opt_start_seq": "start sequence",
        "opt_start_time": "start time",
        "ack_policy": "ack policy",
        "replay_policy": "replay policy",
        "max_waiting": "max waiting",
        "mem_storage": "storage type",
    }
    for name, spoken in fixed.items():
        if getattr(old, name) != getattr(new, name):
            raise api_error("consumer_create", reason=f"{spoken} can not be updated")
    if bool(old.deliver_subject) != bool(new.deliver_subject):
        kinds = ("push", "pull") if old.deliver_subject else ("pull", "push")
        raise api_error("consumer_create", reason="can not update {} consumer to {} based".format(*kinds))
    return new


def filters_of(config: ConsumerConfig) -> list[bytes]:
    """The patterns of which a message must match one; empty: every message."""
    subjects = [config.filter_subject] if config.filter_subject else config.filter_subjects
    return [subject.encode() for subject in subjects]


def check_name(name: str) -> None:
    """Raises JetStreamError for a name that cannot be a consumer's."""
    if len(name) > MAX_NAME:
        raise api_error("consumer_create", reason=f"consumer name is too long, maximum allowed is {MAX_NAME}")
    if not name or any(character in name for character in ".*> \t\r\n\f"):
        raise api_error("consumer_create", reason="consumer name can not contain '.', '*', '>'")
    if "/" in name or "\\" in name:
        raise api_error("consumer_name_with_separator")


def _check_push(config: ConsumerConfig, stream: StreamConfig) -> None:
    target = config.deliver_subject.encode()
    if config.max_waiting:
        raise api_error("push_max_waiting")
    if not is_literal(target):
        raise api_error("deliver_to_wildcards")
    if any(patterns_overlap(target, subject.encode()) for subject in stream.subjects):
        raise api_error("deliver_cycle")
    if 0 < config.idle_heartbeat < SMALLEST_HEARTBEAT:
        raise api_error("heartbeat_too_small")
    if config.flow_control and not config.idle_heartbeat:
        raise api_error("flow_control_needs_heartbeats")


def _check_retention(config: ConsumerConfig, stream: StreamConfig) -> None:
    if stream.retention == "workqueue":
        if config.ack_policy != "explicit":
            raise api_error("workqueue_explicit_ack")
        if config.deliver_policy != "all":
            raise api_error("workqueue_deliver_all")


def _check_common(config: ConsumerConfig) -> None:
    if len(config.description.encode()) > MAX_DESCRIPTION:
        raise api_error("description_too_long", limit=MAX_DESCRIPTION)
    if config.ack_wait < 0 or any(wait < 0 for wait in config.backoff):
        raise api_error("ack_wait_negative")
    if config.backoff and 0 < config.max_deliver < len(config.backoff):
        raise api_error("max_deliver_below_backoff")
    if config.sample_freq:
        number = config.sample_freq.removesuffix("%")
        if not (number.isascii() and number.isdigit()):
            raise api_error("invalid_sampling", reason=f'strconv.Atoi: parsing "{number}": invalid syntax')
    if config.pause_until:
        try:
            parse_time(config.pause_until)
        except ValueError as error:
            raise api_error("invalid_json", reason=str(error)) from error


def _check_not_built(config: ConsumerConfig) -> None:
    if config.priority_groups and not config.priority_policy:
        raise api_error("priority_group_without_policy")
    if config.priority_policy and config.priority_policy != "none":
        if not config.priority_groups:
            raise api_error("priority_without_group")
        raise api_error("consumer_create", reason="priority groups are not supported by this server yet")


def _check_replicas(replicas: int) -> None:
    if replicas < 0:
        raise api_error("replicas_negative")
    if replicas > MAX_REPLICAS:
        raise api_error("stream_config", reason=f"maximum replicas is {MAX_REPLICAS}")
    if replicas > 1:
        raise api_error("too_many_replicas")


def _check_pull(config: ConsumerConfig, stream: StreamConfig) -> None:
    if config.rate_limit_bps:
        raise api_error("pull_with_rate_limit")
    if config.idle_heartbeat:
        raise api_error("heartbeat_needs_push")
    if config.flow_control:
        raise api_error("flow_control_needs_push")
    if config.direct:
        raise api_error("direct_needs_push")
    if 0 < config.max_expires < SMALLEST_MAX_EXPIRES:
        raise api_error("max_expires_too_small")
    if stream.retention == "workqueue" and config.ack_policy == "none":
        raise api_error("workqueue_needs_explicit")


def _check_filters(config: ConsumerConfig) -> None:
    if config.filter_subject and config.filter_subjects:
        raise api_error("two_kinds_of_filter")
    if "" in config.filter_subjects:
        raise api_error("filter_empty")
    filters = filters_of(config)
    if not all(map(is_valid_subject, filters)):
        raise api_error("stream_config", reason="invalid subject")
    for position, subject in enumerate(filters):
        if any(patterns_overlap(earlier, subject) for earlier in filters[:position]):
            raise api_error("filters_overlap")


def _check_delivery(config: ConsumerConfig) -> None:
    policy, sequence, time = config.deliver_policy, config.opt_start_seq, config.opt_start_time
    match policy:
        case "by_start_sequence":
            spoken = "deliver by start sequence"
            if not sequence:
                raise _policy(f"{spoken}, but optional start sequence is not set")
            if time:
                raise _policy(f"{spoken}, but optional start time is also set")
        case "by_start_time":
            spoken = "deliver by start time"
            if not time:
                raise _policy(f"{spoken}, but optional start time is not set")
            if sequence:  # "start start" is nats-server's
                raise _policy(f"{spoken}, but optional start start sequence is also set")
            try:
                parse_time(time)
            except ValueError as error:
                raise api_error("invalid_json", reason=str(error)) from error
        case _:
            spoken = _POLICY_TEXT[policy]
            if sequence:
                raise _policy(f"{spoken}, but optional start sequence is also set")
            if time:
                raise _policy(f"{spoken}, but optional start time is also set")
            if policy == "last_per_subject" and not filters_of(config):
                raise _policy(f"{spoken}, but optional filter subject is not set")


def _policy(reason: str) -> JetStreamError:
    return api_error("invalid_policy", reason=f"consumer delivery policy is {reason}")
