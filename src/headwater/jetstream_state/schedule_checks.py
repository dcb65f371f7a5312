"""Checks publishes that are schedules or end one, in nats-server's order and with its texts (ADR-51 of NATS)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_state.schedule_times import PATTERN, next_turn
from headwater.model.header_block import lookup
from headwater.model.subject import is_literal, is_valid_subject, patterns_overlap

TARGET = b"Nats-Schedule-Target"
SOURCE = b"Nats-Schedule-Source"
TTL = b"Nats-Schedule-TTL"
ROLLUP = b"Nats-Schedule-Rollup"
SCHEDULER = b"Nats-Scheduler"
NEXT = b"Nats-Schedule-Next"
PURGE = b"purge"


class ScheduleRules(NamedTuple):
    """What the stream allows. `subjects`: those it captures. `is_other(subject)`: whether the subject has a last
    message that is not a schedule. `now`: ns since 1970. `is_ttl(text)`: whether a TTL is valid."""

    allowed: bool
    ttl: bool
    subjects: Sequence[bytes]
    is_other: Callable[[bytes], bool]
    now: int
    is_ttl: Callable[[bytes], bool]


def check_schedule(block: bytes, subject: bytes, rules: ScheduleRules) -> bool:
    """Whether the message is a schedule, which needs a roll-up of its subject. Raises JetStreamError for an invalid
    one, or one that is not for this stream."""
    adds_rollup = _check_schedule(block, subject, rules)
    _check_scheduler(block, subject, rules)
    return adds_rollup


def _check_schedule(block: bytes, subject: bytes, rules: ScheduleRules) -> bool:
    if PATTERN not in block:
        return False
    try:
        turn = next_turn(block, rules.now, rules.now)
    except Exception:
        if not rules.allowed:
            raise api_error("schedules_disabled") from None
        raise
    if turn is None:
        return False
    if not rules.allowed:
        raise api_error("schedules_disabled")
    ttl, target, source = (lookup(block, name) or b"" for name in (TTL, TARGET, SOURCE))
    if ttl and not rules.is_ttl(ttl):
        raise api_error("schedule_ttl")
    if (lookup(block, ROLLUP) or b"sub") != b"sub":
        raise api_error("schedule_rollup")
    if ttl and not rules.ttl:
        raise api_error("ttl_disabled")
    if not _is_publishable(target) or target == subject:
        raise api_error("schedule_target")
    if source and (source in (target, subject) or not _is_publishable(source)):
        raise api_error("schedule_source")
    if not any(patterns_overlap(own, target) for own in rules.subjects):
        raise api_error("schedule_target")
    if source and not any(patterns_overlap(own, source) for own in rules.subjects):
        raise api_error("schedule_source")
    rollup = (lookup(block, b"Nats-Rollup") or b"").lower()
    if rollup not in (b"", b"sub"):
        raise api_error("schedule_rollup")
    return not rollup


def _check_scheduler(block: bytes, subject: bytes, rules: ScheduleRules) -> None:
    """Check the headers of messages made by schedules: a client may send them to end a schedule."""
    following, scheduler = lookup(block, NEXT), lookup(block, SCHEDULER) or b""
    if not following:
        if scheduler:
            raise api_error("schedule_scheduler")
        return
    if following != PURGE or not _is_publishable(scheduler) or scheduler == subject:
        raise api_error("schedule_scheduler")
    if not rules.allowed:
        raise api_error("schedules_disabled")
    if rules.is_other(scheduler):
        raise api_error("schedule_scheduler")


def _is_publishable(subject: bytes) -> bool:
    return is_valid_subject(subject) and is_literal(subject)
