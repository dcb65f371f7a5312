"""The rules for mirrors and sources of a stream: nats-server's checks, in its order, with its errors.

    check_copies       what one configuration says about itself
    check_origins      what the other streams of the account say to it: sizes, prefixes, rings; and what it takes from them
    index_name         by which a source is known: its stream, filters and destinations; two alike are an error

An origin that does not exist, a filter that matches nothing, and a start by sequence and by time at once are no errors, as
with nats-server.
"""

from collections.abc import Callable, Iterable, Sequence

from headwater.errors import JetStreamError
from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_documents.streams import SourceConsumer, StreamConfig, StreamSource, SubjectTransform
from headwater.model.short_hash import short_hash
from headwater.model.subject import is_literal, is_valid_subject, patterns_overlap
from headwater.model.subject_transform import SubjectTransform as Transform

API_PREFIX = "$JS.API"
ALL = ">"


def index_name(source: StreamSource) -> str:
    """`<stream>[:<hash of the API>] <filters> <destinations>`, each of several behind a form feed."""
    name = source.name
    if source.external is not None:
        name += f":{short_hash(source.external.api)}"
    if source.consumer is not None:
        name += f":C={short_hash(source.consumer.name)}"
    if not source.subject_transforms:
        return f"{name} {source.filter_subject or ALL} {ALL}"
    filters = "\f".join(each.src or ALL for each in source.subject_transforms)
    destinations = "\f".join(each.dest or ALL for each in source.subject_transforms)
    return f"{name} {filters} {destinations}"


def transform_of(setting: SubjectTransform) -> Transform | None:
    """The transform of subjects; None if the setting changes nothing. Raises ValueError."""
    return Transform(setting.src or ALL, setting.dest) if setting.dest else None


def settle_start_times(config: StreamConfig) -> None:
    """Write the start times as they are shown. Raises JetStreamError for what is no time."""
    from headwater.jetstream_documents.given_times import start_time  # here: a start without streams does not need it

    for source in (config.mirror, *(config.sources or ())):
        if source is not None:
            source.opt_start_time = start_time(source.opt_start_time)


def check_copies(config: StreamConfig) -> None:
    """Raises JetStreamError."""
    if config.mirror is not None:
        _check_mirror(config, config.mirror)
    if config.sources and config.allow_msg_schedules:
        raise api_error("source_with_schedules")
    _check_sources(config.sources or [])


def check_filters(config: StreamConfig) -> None:
    """The checks that nats-server makes only when it begins to copy. Raises JetStreamError."""
    if config.mirror is not None and config.mirror.filter_subject:
        wanted = config.mirror.filter_subject
        if not is_valid_subject(wanted.encode()):
            raise api_error("stream_create", reason=f"subject filter '{wanted}' for the mirror invalid subject")
    for source in config.sources or ():
        if source.filter_subject and not is_valid_subject(source.filter_subject.encode()):
            reason = f"subject filter '{source.filter_subject}' for the source: invalid subject"
            raise api_error("stream_create", reason=reason)


def check_transform(setting: SubjectTransform | None) -> None:
    """Check the `subject_transform` of a stream. Raises JetStreamError."""
    if setting is not None:
        _check_setting(setting, "stream_transform")


def check_origins(config: StreamConfig, find: Callable[[str], StreamConfig | None], *, pedantic: bool = False) -> None:
    """Check a configuration against its origins; `find(name)` returns a stream of this account. A mirror allows direct
    gets if its origin does. Raises JetStreamError."""
    subjects: list[str] = []
    mirror = config.mirror
    if mirror is not None and mirror.external is None:
        origin = find(mirror.name)
        if origin is not None:
            subjects += origin.subjects
            _check_size(config, origin, "mirror_message_size")
            if pedantic and config.mirror_direct != origin.allow_direct:
                raise api_error("pedantic", reason="origin stream has direct get set, mirror has it disabled")
            config.mirror_direct = origin.allow_direct
    for source in config.sources or ():
        origin = find(source.name) if source.external is None else None
        if origin is not None:
            subjects += origin.subjects
            _check_size(config, origin, "source_message_size")
    _check_prefixes(config, subjects)
    _check_ring(config, find)


def _check_size(config: StreamConfig, origin: StreamConfig, refusal: str) -> None:
    if 0 < config.max_msg_size < origin.max_msg_size:
        raise api_error(refusal)


def _check_mirror(config: StreamConfig, mirror: StreamSource) -> None:
    refusals = {
        "mirror_with_first_seq": config.first_seq > 0,
        "mirror_with_subjects": bool(config.subjects),
        "mirror_with_sources": bool(config.sources),
        "mirror_with_counters": config.allow_msg_counter,
        "mirror_with_atomic": config.allow_atomic,
        "mirror_with_batches": config.allow_batched,
        "mirror_with_schedules": config.allow_msg_schedules,
        "mirror_consumer_invalid": not _is_usable(mirror.consumer, mirror),
        "mirror_filter_and_transforms": bool(mirror.filter_subject and mirror.subject_transforms),
    }
    for refusal, holds in refusals.items():
        if holds:
            raise api_error(refusal)
    if config.subject_delete_marker_ttl > 0:  # a marker would take a sequence that the origin gives to a message
        raise api_error("stream_config", reason="subject delete markers forbidden on mirrors")
    for place, setting in enumerate(mirror.subject_transforms):
        _check_setting(setting, "mirror_transform")
        _check_overlap(mirror.subject_transforms, place, "mirror_filters_overlap")
    if mirror.external is None and not _is_name(mirror.name):
        raise api_error("mirror_name_invalid")


def _check_sources(sources: Iterable[StreamSource]) -> None:
    seen: set[str] = set()
    durables: set[tuple[str, str]] = set()
    for source in sources:
        if not _is_name(source.name):
            raise api_error("source_name_invalid")
        if index_name(source) in seen:
            raise api_error("source_duplicate")
        seen.add(index_name(source))
        if source.filter_subject and source.subject_transforms:
            raise api_error("source_filter_and_transforms")
        for setting in source.subject_transforms:
            _check_setting(setting, "source_transform")
        for place in range(len(source.subject_transforms)):
            _check_overlap(source.subject_transforms, place, "source_filters_overlap")
        if not _is_usable(source.consumer, source):
            raise api_error("source_consumer_invalid")
        if source.consumer is not None:
            durable = index_name(source).split(" ")[0], source.consumer.name
            if durable in durables:
                raise api_error("source_consumer_duplicate")
            durables.add(durable)


def _is_usable(consumer: SourceConsumer | None, source: StreamSource) -> bool:
    """Whether a durable consumer that a user created can be used: start and filter are then the consumer's own."""
    if consumer is None:
        return True
    subject = consumer.deliver_subject.encode()
    if not _is_name(consumer.name) or not is_valid_subject(subject) or not is_literal(subject):
        return False
    return not (source.opt_start_seq or source.opt_start_time or source.filter_subject)


def _check_setting(setting: SubjectTransform, refusal: str) -> None:
    """`refusal`: the error of a transform that is none; with `_source`, that of an invalid source."""
    if setting.src and not is_valid_subject(setting.src.encode()):
        raise api_error(f"{refusal}_source", subject=setting.src)
    try:
        transform_of(setting)
    except ValueError as error:
        raise api_error(refusal, reason=str(error)) from None


def _check_overlap(settings: Sequence[SubjectTransform], place: int, refusal: str) -> None:
    """Refuse a transform whose source overlaps with that of another one."""
    others = [*settings[:place], *settings[place + 1 :]]
    if any(_overlap(settings[place].src or ALL, other.src or ALL) for other in others):
        raise api_error(refusal)


def _check_prefixes(config: StreamConfig, subjects: list[str]) -> None:
    copied = [config.mirror] if config.mirror is not None else config.sources or []
    externals = [source.external for source in copied if source.external is not None]
    for external in externals:
        if not external.deliver:
            continue
        if not _is_publishable(external.deliver):
            raise api_error("external_deliver_invalid", prefix=external.deliver)
        for subject in subjects:
            if _overlap(subject, f"{external.deliver}.{subject}"):
                raise api_error("external_deliver_overlap", prefix=external.deliver, subject=subject)
    for external in externals:
        if not external.api:
            continue
        if not _is_publishable(external.api):
            reason = f'stream external api prefix "{external.api}" must be a valid subject without wildcards'
            raise api_error("stream_config", reason=reason)
        if external.api == API_PREFIX:
            raise api_error("external_api_overlap", prefix=external.api, subject=API_PREFIX)


def _check_ring(config: StreamConfig, find: Callable[[str], StreamConfig | None]) -> None:
    """Refuse a ring of streams that copy each other."""
    waiting, visited = [config], set[str]()
    while waiting:
        one = waiting.pop(0)
        visited.add(one.name)
        for source in one.sources or ():
            if source.external is not None:
                continue
            if source.name in visited:
                wanted = source.filter_subject
                if not wanted or any(_overlap(subject, wanted) for subject in one.subjects):
                    raise _ring()
            elif (origin := find(source.name)) is not None:
                waiting.append(origin)
        mirror = one.mirror
        if mirror is not None and mirror.external is None:
            if mirror.name in visited:
                raise _ring()
            if (origin := find(mirror.name)) is not None:
                waiting.append(origin)


def _ring() -> JetStreamError:
    return api_error("stream_config", reason="detected cycle")


def _overlap(left: str, right: str) -> bool:
    return patterns_overlap(left.encode(), right.encode())


def _is_publishable(subject: str) -> bool:
    return is_valid_subject(subject.encode()) and is_literal(subject.encode())


def _is_name(name: str) -> bool:
    return bool(name) and not any(character in name for character in ".*>/\\ \t\r\n\f")
