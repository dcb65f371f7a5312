"""The rules for a stream's publishing settings: counters, atomic and fast batches, schedules. Rules and texts are
nats-server's; `stream_rules.py` calls them at nats-server's place in the order of checks.
"""

from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_documents.streams import StreamConfig


def check_publishing(config: StreamConfig) -> None:
    """Raises JetStreamError for settings that exclude each other."""
    if config.mirror is not None:
        _check_mirror(config)
    if config.allow_atomic and config.persist_mode == "async":
        raise _refused("async persist mode is not supported with atomic batch publish")


def check_publishing_update(old: StreamConfig, new: StreamConfig) -> None:
    """Raises JetStreamError for a setting that an update must not change."""
    if new.allow_msg_counter != old.allow_msg_counter:
        raise _refused("stream configuration update can not change message counter setting")
    if old.allow_msg_schedules and not new.allow_msg_schedules:
        raise _refused("message schedules can not be disabled")


def required_level(config: StreamConfig) -> int:
    """The API level that a server needs for these settings."""
    if config.allow_batched:
        return 4
    if config.allow_atomic or config.allow_msg_counter or config.allow_msg_schedules or config.persist_mode == "async":
        return 2
    return int(config.allow_msg_ttl or config.subject_delete_marker_ttl > 0)


def _check_mirror(config: StreamConfig) -> None:
    if config.allow_msg_counter:
        raise api_error("mirror_with_counters")
    if config.allow_atomic:
        raise api_error("mirror_with_atomic")


def check_counter(config: StreamConfig) -> None:
    """Raises JetStreamError for settings that a counter excludes."""
    if not config.allow_msg_counter:
        return
    if config.discard == "new":
        raise _refused("counter stream cannot use discard new")
    if config.allow_msg_ttl:
        raise _refused("counter stream cannot use message TTLs")
    if config.allow_msg_schedules:
        raise _refused("counter stream cannot use message schedules")
    if config.retention != "limits":
        raise _refused("counter stream can only use limits retention")


def _refused(reason: str) -> Exception:
    return api_error("stream_config", reason=reason)
