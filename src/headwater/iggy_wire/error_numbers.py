"""Iggy's errors: names, and the numbers on the wire, which depend on the era.

Upstream renumbered the 40xx range once after the seed; with one table an old client would get "invalid key" for a
header block that is too big. Names are upstream's, in snake case, as in HTTP answers. Only errors that this server
sends or this client may receive are here.
"""

from typing import Final

from headwater.errors import HeaderError, HeadwaterError, IggyError
from headwater.model import typed_header, typed_headers

NUMBERS: Final = {
    "error": 1,
    "invalid_configuration": 2,
    "invalid_command": 3,
    "invalid_format": 4,
    "feature_unavailable": 5,
    "invalid_identifier": 6,
    "resource_not_found": 20,
    "stale_client": 30,
    "unauthenticated": 40,
    "unauthorized": 41,
    "invalid_credentials": 42,
    "invalid_username": 43,
    "invalid_password": 44,
    "invalid_user_status": 45,
    "user_already_exists": 46,
    "user_inactive": 47,
    "cannot_delete_user": 48,
    "cannot_change_permissions": 49,
    "invalid_personal_access_token_name": 50,
    "personal_access_token_already_exists": 51,
    "personal_access_tokens_limit_reached": 52,
    "invalid_personal_access_token": 53,
    "personal_access_token_expired": 54,
    "users_limit_reached": 55,
    "access_token_missing": 77,
    "invalid_access_token": 78,
    "invalid_utf8": 81,
    "invalid_number_encoding": 82,
    "history_unavailable": 87,
    "deferred_poll_capacity_exceeded": 90,
    "client_not_found": 100,
    "stream_id_not_found": 1009,
    "stream_name_not_found": 1010,
    "stream_name_already_exists": 1012,
    "invalid_stream_name": 1013,
    "invalid_stream_id": 1014,
    "invalid_topic_size": 1019,
    "topic_id_not_found": 2010,
    "topic_name_not_found": 2011,
    "topic_name_already_exists": 2013,
    "invalid_topic_name": 2014,
    "too_many_partitions": 2015,
    "invalid_topic_id": 2016,
    "invalid_partitions_count": 2019,
    "invalid_replication_factor": 2018,
    "partition_resize_disabled": 2023,
    "partition_not_found": 3007,
    "no_partitions": 3008,
    "topic_full": 3009,
    "consumer_offset_not_found": 3021,
    "not_resolved_consumer": 3022,
    "segment_not_found": 4000,
    "cannot_save_messages_to_segment": 4006,
    "invalid_messages_count": 4009,
    "cannot_append_message": 4010,
    "cannot_read_message": 4011,
    "too_big_user_headers": 4017,
    "invalid_header_key": 4018,
    "invalid_header_value": 4019,
    "too_big_message_payload": 4022,
    "too_many_messages": 4023,
    "empty_message_payload": 4024,
    "invalid_message_payload_length": 4025,
    "invalid_message_checksum": 4027,
    "invalid_key_value_length": 4028,
    "invalid_indexes_count": 4035,
    "invalid_messages_size": 4036,
    "too_small_message": 4037,
    "invalid_batch_checksum": 4039,
    "invalid_header_kind": 4040,
    "unsupported_option_key": 4041,
    "invalid_option_value": 4042,
    "options_block_too_large": 4043,
    "invalid_offset": 4100,
    "invalid_reserved_field": 4101,
    "option_not_updatable": 4103,
    "option_not_resettable": 4104,
    "read_only_option": 4105,
    "stream_encryption_unavailable": 4106,
    "consumer_group_id_not_found": 5000,
    "invalid_consumer_group_id": 5002,
    "consumer_group_name_not_found": 5003,
    "consumer_group_name_already_exists": 5004,
    "invalid_consumer_group_name": 5005,
    "consumer_group_member_not_found": 5006,
    "consumer_group_partition_not_owned": 5009,
    "snapshot_failed": 9000,
    "io_error": 13000,
    "already_authenticated": 14000,
    "invalid_session": 14001,
    "incompatible_protocol_version": 14003,
}

SEED_NUMBERS: Final = {
    **{name: number for name, number in NUMBERS.items() if number in (1, 3, 4, 5, 100)},
    "stream_id_not_found": 1009,
    "stream_name_not_found": 1010,
    "stream_id_already_exists": 1011,
    "stream_name_already_exists": 1012,
    "invalid_stream_name": 1013,
    "invalid_stream_id": 1014,
    "topic_id_not_found": 2010,
    "topic_name_not_found": 2011,
    "topic_id_already_exists": 2012,
    "topic_name_already_exists": 2013,
    "invalid_topic_name": 2014,
    "too_many_partitions": 2015,
    "invalid_topic_id": 2016,
    "partition_not_found": 3007,
    "no_partitions": 3008,
    "invalid_messages_count": 4009,
    "too_big_headers_payload": 4016,
    "invalid_header_key": 4017,
    "invalid_header_value": 4018,
    "too_big_message_payload": 4021,
    "too_many_messages": 4022,
    "empty_message_payload": 4023,
    "invalid_key_value_length": 4027,
    "invalid_offset": 4100,
    "consumer_group_id_not_found": 5000,
    "consumer_group_name_already_exists": 5001,  # the seed's groups have numbers only: the id exists
    "invalid_consumer_group_id": 5002,
    "consumer_group_member_not_found": 5003,
}  # crate 0.0.30

_SEED_NAMES: Final = {
    "too_big_user_headers": "too_big_headers_payload",
    "invalid_header_kind": "invalid_command",
    "invalid_partitions_count": "partition_not_found",
    "invalid_identifier": "invalid_command",  # of a kind that is none
}
_NAMES: Final = {number: name for name, number in NUMBERS.items()}

_OF_RULE: Final = {
    typed_header.KEY_LENGTH: "invalid_header_key",
    typed_header.NOT_UTF8: "invalid_header_key",
    typed_header.UNKNOWN_KIND: "invalid_header_kind",
    typed_headers.TOTAL: "too_big_user_headers",
}  # every other rule of a typed header: invalid_header_value


def refusal(name: str, why: str, value: object = None) -> IggyError:
    """The exception for one of upstream's errors, with the present number."""
    return IggyError(name, NUMBERS.get(name, 1), why, value=value)


def of_number(number: int) -> IggyError:
    """The name of an error number of today's server."""
    name = _NAMES.get(number, "error")
    return IggyError(name, number, name.replace("_", " "))


def of_header_error(error: HeaderError) -> IggyError:
    """The refusal of a header that broke a rule."""
    return refusal(_OF_RULE.get(error.rule, "invalid_header_value"), str(error), error.key)


def seed_number(error: IggyError) -> int:
    """The number that a client of crate 0.0.30 knows; 1 (error) for what did not exist then."""
    return SEED_NUMBERS.get(_SEED_NAMES.get(error.name, error.name), 1)


def of_today(refused: IggyError) -> IggyError:
    """The error of generation V, which has one number for a missing resource, whether named or numbered."""
    name = refused.name.replace("_name_not_found", "_id_not_found")
    return refused if name == refused.name else refusal(name, refused.message, refused.value)


def as_refusal(error: HeadwaterError) -> IggyError:
    """The refusal for any Headwater error."""
    if isinstance(error, IggyError):
        return error
    if isinstance(error, HeaderError):
        return of_header_error(error)
    return refusal("cannot_append_message", str(error))
