"""The rules for stream configurations: nats-server's rules and defaults, and a refusal of unsupported features.

`checked` turns a request into the configuration that is stored and shown. A limit that the log cannot enforce, or an
unsupported feature, is refused by name: a limit that is accepted but ignored fills a disk. The order of the checks is
nats-server's, so that a request with two faults gets the same answer from both.

Stored metadata has `_nats.req.level` alone; answers add the server's level and version (`shown_metadata`).
"""

from collections.abc import Collection

import msgspec

from headwater.compression.snappy import HINT, compressor
from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_documents.publishing_rules import (
    check_counter,
    check_publishing,
    check_publishing_update,
    required_level,
)
from headwater.jetstream_documents.source_rules import check_copies, check_transform, settle_start_times
from headwater.jetstream_documents.streams import ConsumerLimits, Placement, Republish, StreamConfig
from headwater.model.subject import is_valid_subject, patterns_overlap
from headwater.model.subject_transform import SubjectTransform
from headwater.model.timestamps import SECOND, format_duration
from headwater.version import API_LEVEL, COMPATIBLE_VERSION

MAX_NAME = 255  # characters
MAX_DESCRIPTION = 4096  # bytes
MAX_METADATA = 128 << 10  # bytes of keys and values
MAX_REPLICAS = 5
DEFAULT_DUPLICATE_WINDOW = 120 * SECOND
SMALLEST_DUPLICATE_WINDOW = SECOND // 10
SMALLEST_MAX_AGE = SECOND // 10

REQUIRED_LEVEL_KEY = "_nats.req.level"
SYNC_KEY = "_headwater.sync"  # shown if an acknowledgement does not mean that the message is on disk
_SERVER_KEYS = ("_nats.level", "_nats.ver", REQUIRED_LEVEL_KEY, SYNC_KEY)

API_SUBJECTS = (b"$JS.>", b"$JSC.>", b"$NRG.>")
EVENTS = b"$JS.EVENT."
SYSTEM_SUBJECTS = b"$SYS.>"
ACCOUNT_EVENTS = b"$SYS.ACCOUNT."

_PERSIST_MODES = ("", "default", "async")


def checked(
    config: StreamConfig, *, sealing: bool = False, pedantic: bool = False, most_window: int = 0
) -> StreamConfig:
    """`config` with defaults filled in; `sealing`: the update may seal the stream. `pedantic`: refuse settings that
    would be corrected. `most_window`: the longest duplicate_window that the server allows (ns), 0 for any. Raises
    JetStreamError with nats-server's number."""
    settle_start_times(config)
    if not sealing:
        _check_new(config)
    _check_texts(config)
    _check_replicas(config.num_replicas)
    if pedantic:
        _check_pedantic(config, most_window)
    complete = msgspec.structs.replace(
        StreamConfig(**{name: getattr(config, name) for name in StreamConfig.__struct_fields__}),
        subjects=config.subjects or ([] if config.mirror or config.sources else [config.name]),
        max_consumers=_limit(config.max_consumers),
        max_msgs=_limit(config.max_msgs),
        max_bytes=_limit(config.max_bytes),
        max_msgs_per_subject=_limit(config.max_msgs_per_subject),
        max_msg_size=_limit(config.max_msg_size),
        num_replicas=config.num_replicas or 1,
        persist_mode="" if config.persist_mode == "default" else config.persist_mode,
        metadata=stored_metadata(config.metadata),
        sources=config.sources or None,
        republish=_republish(config.republish),
        consumer_limits=consumer_limits_of(config),
    )
    complete.duplicate_window = _check_times(complete, most_window)
    if complete.deny_purge and complete.allow_rollup_hdrs:
        raise _refused("roll-ups require the purge permission")
    check_counter(complete)
    _check_discarding(complete)
    check_publishing(complete)
    _settle_markers(complete, pedantic=pedantic)
    _settle_schedules(complete, pedantic=pedantic)
    _check_persistence(complete)
    check_copies(complete)
    _check_subjects(complete)
    check_transform(complete.subject_transform)
    if complete.republish is not None:
        _check_republish(complete, complete.republish)
    complete.placement = _placement(config.placement)
    _check_built(complete)
    complete.metadata = {**(complete.metadata or {}), REQUIRED_LEVEL_KEY: str(required_level(complete))}
    return complete


def _check_built(config: StreamConfig) -> None:
    if config.compression != "none" and config.storage == "file" and compressor() is None:
        raise _refused(f"compression needs a package that is not there: {HINT}")


def _check_new(config: StreamConfig) -> None:
    """The checks of STREAM.CREATE alone, made first."""
    if "/" in config.name or "\\" in config.name:
        raise api_error("stream_name_with_separator")
    if config.sealed:
        raise _refused("stream configuration for create can not be sealed")
    if config.mirror is None and config.mirror_direct:
        raise _refused("stream has no mirror but does have mirror direct")


def _check_pedantic(config: StreamConfig, most_window: int) -> None:
    for name in ("max_msgs", "max_msgs_per_subject", "max_bytes", "max_msg_size", "max_consumers"):
        if getattr(config, name) < -1:
            raise api_error("pedantic", reason=f"{name} must be set to -1")
    copies = config.mirror is not None or config.sources
    if not config.duplicate_window and not copies and 0 < most_window < DEFAULT_DUPLICATE_WINDOW:
        raise api_error("pedantic", reason="duplicate window limits are higher than current limits")
    if not config.duplicate_window and SMALLEST_MAX_AGE <= config.max_age < DEFAULT_DUPLICATE_WINDOW:
        raise api_error("pedantic", reason="duplicate window cannot be bigger than max age")
    if config.republish is not None and not config.republish.src:
        raise api_error("pedantic", reason="republish source can not be empty")


def _republish(setting: Republish | None) -> Republish | None:
    """The setting with an empty source replaced by its meaning, `>`."""
    return msgspec.structs.replace(setting, src=">") if setting is not None and not setting.src else setting


def _placement(wanted: Placement | None) -> Placement | None:
    """The placement as it is stored and shown; a single server accepts any, as nats-server does.

    Clients send it empty: nats.go's object store always, as {"cluster": ""}.
    """
    if wanted is None:
        return None
    if wanted.preferred:
        raise _refused("preferred server not permitted in placement")
    return wanted if wanted.cluster or wanted.tags else None


def check_tier(replicas: int, tiers: Collection[str]) -> None:
    """Refuse a new stream of so many replicas in an account that has limits for other numbers only. `tiers`: their names;
    none where the limits are for any. nats-server asks this before all else. Raises JetStreamError 10120."""
    if tiers and f"R{max(replicas, 1)}" not in tiers:
        raise api_error("no_tier")


def check_alone(config: StreamConfig) -> None:
    """Refuse settings that need a cluster. Raises JetStreamError 10074."""
    if config.num_replicas > 1:
        raise api_error("too_many_replicas")


def updated(old: StreamConfig, new: StreamConfig) -> StreamConfig:
    """The configuration after STREAM.UPDATE with `new`, already checked. Raises JetStreamError for a setting that must
    not change."""
    check_alone(new)
    if new.storage != old.storage:
        raise _refused("stream configuration update can not change storage type")
    if new.retention != old.retention and "workqueue" in (new.retention, old.retention):
        raise _refused("stream configuration update can not change retention policy to/from workqueue")
    if old.sealed and not new.sealed:
        raise _refused("stream configuration update can not unseal a sealed stream")
    if old.deny_delete and not new.deny_delete:
        raise _refused("stream configuration update can not cancel deny message deletes")
    if old.deny_purge and not new.deny_purge:
        raise _refused("stream configuration update can not cancel deny purge")
    if new.mirror is not None and new.mirror != old.mirror:
        raise api_error("mirror_not_updatable")
    if old.allow_msg_ttl and not new.allow_msg_ttl:
        raise _refused("message TTL status can not be disabled")
    check_publishing_update(old, new)
    if old.persist_mode != new.persist_mode:
        raise _refused("stream configuration update can not change persist mode")
    if new.sealed:
        new.max_age, new.discard = 0, "new"
        new.deny_delete = new.deny_purge = True
        new.allow_rollup_hdrs = False
    return new


def same(left: StreamConfig, right: StreamConfig) -> bool:
    """Whether the two configurations are the same, so that creating `right` succeeds while `left` exists."""
    return left == right


def consumer_limits_of(config: StreamConfig) -> ConsumerLimits:
    """The limits for consumers; all unset if the configuration has none."""
    return config.consumer_limits or ConsumerLimits()


def stored_metadata(metadata: dict[str, str] | None, required_level: int = 0) -> dict[str, str]:
    """The metadata to store: the client's own, and the API level that the configuration needs."""
    kept = {key: value for key, value in (metadata or {}).items() if key not in _SERVER_KEYS}
    return {REQUIRED_LEVEL_KEY: str(required_level), **kept}


def shown_metadata(metadata: dict[str, str] | None, sync: str = "always") -> dict[str, str]:
    """The metadata that CREATE, INFO and UPDATE show; lists show the stored one, as in nats-server. `sync`: of the
    stream's log."""
    shown = {**(metadata or {}), "_nats.level": str(API_LEVEL), "_nats.ver": COMPATIBLE_VERSION}
    return shown if sync == "always" else {**shown, SYNC_KEY: sync}


def _refused(reason: str) -> Exception:
    return api_error("stream_config", reason=reason)


def _limit(value: int) -> int:
    """0 and every negative number mean no limit, which is shown as -1."""
    return value if value > 0 else -1


def _check_texts(config: StreamConfig) -> None:
    name = config.name
    if not is_asset_name(name):
        raise _refused("stream name is required and can not contain '.', '*', '>', '\\', '/'")
    if len(name) > MAX_NAME:
        raise _refused(f"stream name is too long, maximum allowed is {MAX_NAME}")
    if len(config.description.encode()) > MAX_DESCRIPTION:
        raise _refused(f"stream description is too long, maximum allowed is {MAX_DESCRIPTION}")
    if metadata_size(config.metadata) > MAX_METADATA:
        raise _refused(f"stream metadata exceeds maximum size of {MAX_METADATA} bytes")


def is_asset_name(name: str) -> bool:
    """Whether this is a valid name of a stream or consumer."""
    return bool(name) and not any(character in name for character in ".*>/\\ \t\r\n\f")


def metadata_size(metadata: dict[str, str] | None) -> int:
    """Bytes of keys and values."""
    return sum(len(key.encode()) + len(value.encode()) for key, value in (metadata or {}).items())


def _check_replicas(replicas: int) -> None:
    if replicas > MAX_REPLICAS:
        raise _refused(f"maximum replicas is {MAX_REPLICAS}")
    if replicas < 0:
        raise api_error("replicas_negative")


def _check_times(config: StreamConfig, most_window: int) -> int:
    """The effective duplicate window."""
    if config.max_age < 0:
        raise _refused("max age can not be negative")
    if 0 < config.max_age < SMALLEST_MAX_AGE:
        raise _refused("max age needs to be >= 100ms")
    window = config.duplicate_window
    if window == 0 and (config.mirror is not None or config.sources):
        return 0  # copied messages were checked for duplicates at their origin
    if window == 0:
        return min(each for each in (DEFAULT_DUPLICATE_WINDOW, config.max_age, most_window) if each > 0)
    if window < 0:
        raise _refused("duplicates window can not be negative")
    if 0 < config.max_age < window:
        raise _refused("duplicates window can not be larger then max age")
    if 0 < most_window < window:
        raise _refused(f"duplicates window can not be larger then server limit of {format_duration(most_window)}")
    if window < SMALLEST_DUPLICATE_WINDOW:
        raise _refused("duplicates window needs to be >= 100ms")
    return window


def _check_discarding(config: StreamConfig) -> None:
    if config.discard_new_per_subject and config.discard != "new":
        raise _refused("discard new per subject requires discard new policy to be set")
    if config.discard_new_per_subject and config.max_msgs_per_subject <= 0:
        raise _refused("discard new per subject requires max msgs per subject > 0")


def _check_persistence(config: StreamConfig) -> None:
    if config.persist_mode not in _PERSIST_MODES:
        raise api_error("invalid_json", reason=f'can not unmarshal "\\"{config.persist_mode}\\""')
    if config.persist_mode == "async":
        if config.storage != "file":
            raise _refused("async persist mode is only supported on file storage")
        if config.num_replicas > 1:
            raise _refused("async persist mode is not supported on replicated streams")
        if config.allow_atomic:
            raise _refused("async persist mode is not supported with atomic batch publish")


def _settle_markers(config: StreamConfig, *, pedantic: bool) -> None:
    """Markers need TTLs and roll-ups: allow both."""
    ttl = config.subject_delete_marker_ttl
    if ttl < 0:
        raise _refused("subject delete marker TTL must not be negative")
    if not ttl:
        return
    if ttl < SECOND:
        raise _refused("subject delete marker TTL must be at least 1 second")
    if not config.allow_msg_ttl:
        if pedantic:
            raise _refused("subject delete marker cannot be set if message TTLs are disabled")
        config.allow_msg_ttl = True
    if not config.allow_rollup_hdrs:
        if pedantic:
            raise _refused("subject delete marker cannot be set if roll-ups are disabled")
        config.allow_rollup_hdrs, config.deny_purge = True, False


def _settle_schedules(config: StreamConfig, *, pedantic: bool) -> None:
    """A schedule replaces the previous one by a roll-up: allow roll-ups."""
    if not config.allow_msg_schedules:
        return
    if config.discard == "new":
        raise _refused("message scheduling cannot use discard new")
    if not config.allow_rollup_hdrs:
        if pedantic:
            raise _refused("message scheduling cannot be set if roll-ups are disabled")
        config.allow_rollup_hdrs, config.deny_purge = True, False


def _check_republish(config: StreamConfig, setting: Republish) -> None:
    """Refuse a destination that could be one of the stream's own subjects, even through a wildcard; nats-server
    compares the destination literally, and would republish for ever."""
    moved = f"from '{setting.src}' to '{setting.dest}'"
    not_valid = _refused(f"stream configuration for republish with transform {moved} not valid")
    cycle = _refused("stream configuration for republish destination forms a cycle")
    subjects = [subject.encode() for subject in config.subjects]
    if setting.dest and any(patterns_overlap(subject, setting.dest.encode()) for subject in subjects):
        raise cycle
    try:
        reach = SubjectTransform(setting.src, setting.dest).reach()
    except ValueError:
        raise not_valid from None
    if any(patterns_overlap(subject, reach) for subject in subjects):
        raise cycle


def _check_subjects(config: StreamConfig) -> None:
    subjects = [subject.encode() for subject in config.subjects]
    for position, subject in enumerate(subjects):
        if not is_valid_subject(subject):
            raise _refused("invalid subject")
        if subject in subjects[:position]:
            raise _refused("duplicate subjects detected")
        if not config.no_ack:
            _check_reserved(subject)
        if subject == b">" and config.num_replicas != 1:
            raise _refused("capturing all subjects requires replicas of 1")
        for later in subjects[position + 1 :]:
            if patterns_overlap(later, subject):
                raise _refused(f'subject "{subject.decode()}" overlaps with "{later.decode()}"')


def _check_reserved(subject: bytes) -> None:
    """Refuse to capture the server's own subjects with acks."""
    if subject == b">":
        raise _refused("capturing all subjects requires no-ack to be true")
    if any(patterns_overlap(subject, reserved) for reserved in API_SUBJECTS) and not subject.startswith(EVENTS):
        raise _refused("subjects that overlap with jetstream api require no-ack to be true")
    if patterns_overlap(subject, SYSTEM_SUBJECTS) and not subject.startswith(ACCOUNT_EVENTS):
        raise _refused("subjects that overlap with system api require no-ack to be true")
