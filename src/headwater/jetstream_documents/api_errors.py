"""Every error that this JetStream can answer, in one table: the HTTP-like code, nats-server's number, and its text.

Clients match the number, and some the text, so both are nats-server 2.15's, spelling included. `{…}` is filled in by
`api_error`. An error that is ours alone (a feature that is not built) borrows the number that nats-server uses for a
configuration it refuses, and names in plain words what is missing.
"""

from headwater.errors import DiskFull, JetStreamError, StorageError

ERRORS: dict[str, tuple[int, int, str]] = {
    "account_resources_exceeded": (400, 10002, "resource limits exceeded for account"),
    "bad_request": (400, 10003, "bad request"),
    "cluster_required": (503, 10010, "JetStream clustering support required"),
    "consumer_create": (500, 10012, "{reason}"),
    "consumer_name_in_use": (400, 10013, "consumer name already in use"),
    "consumer_not_found": (404, 10014, "consumer not found"),
    "durable_name_not_in_subject": (
        400, 10016, "consumer expected to be durable but no durable name set in subject",
    ),
    "durable_name_mismatch": (400, 10017, "consumer name in subject does not match durable name in request"),
    "durable_name_not_set": (400, 10018, "consumer expected to be durable but a durable name was not set"),
    "ephemeral_with_durable_name": (
        400, 10020, "consumer expected to be ephemeral but a durable name was set in request",
    ),
    "insufficient_resources": (503, 10023, "insufficient resources: {reason}"),
    "invalid_json": (400, 10025, "invalid JSON: {reason}"),
    "maximum_streams": (400, 10027, "maximum number of streams reached"),
    "maximum_consumers": (400, 10026, "maximum consumers limit reached"),
    "mirror_with_subjects": (400, 10034, "stream mirrors can not contain subjects"),
    "no_message": (404, 10037, "no message found"),
    "not_empty_request": (400, 10038, "expected an empty request payload"),
    "not_enabled_for_account": (503, 10039, "JetStream not enabled for account"),
    "sequence_not_found": (400, 10043, "sequence {sequence} not found"),
    "storage_exceeded": (500, 10047, "insufficient storage resources available"),
    "memory_exceeded": (500, 10028, "insufficient memory resources available"),
    "stream_config": (500, 10052, "{reason}"),
    "message_too_large": (400, 10054, "message size exceeds maximum allowed"),
    "stream_name_mismatch": (400, 10056, "stream name in subject does not match request"),
    "delete_failed": (500, 10057, "{reason}"),
    "stream_name_in_use": (400, 10058, "stream name already in use with a different configuration"),
    "stream_not_found": (404, 10059, "stream not found"),
    "expected_stream": (400, 10060, "expected stream does not match"),
    "restore_failed": (500, 10062, "restore failed: {reason}"),
    "snapshot_failed": (500, 10064, "snapshot failed: {reason}"),
    "subjects_overlap": (400, 10065, "subjects overlap with an existing stream"),
    "stream_update": (500, 10069, "{reason}"),
    "wrong_last_msg_id": (400, 10070, "wrong last msg ID: {id}"),
    "wrong_last_sequence": (400, 10071, "wrong last sequence: {sequence}"),
    "too_many_replicas": (500, 10074, "replicas > 1 not supported in non-clustered mode"),
    "store_failed": (503, 10077, "{reason}"),
    "deliver_to_wildcards": (400, 10079, "consumer deliver subject has wildcards"),
    "push_max_waiting": (400, 10080, "consumer in push mode can not set max waiting"),
    "deliver_cycle": (400, 10081, "consumer deliver subject forms a cycle"),
    "max_ack_pending_without_acks": (400, 10082, "consumer requires ack policy for max ack pending"),
    "heartbeat_too_small": (400, 10083, "consumer idle heartbeat needs to be >= 100ms"),
    "workqueue_needs_explicit": (
        400, 10084, "consumer in pull mode requires explicit ack policy on workqueue stream",
    ),
    "pull_with_rate_limit": (400, 10086, "consumer in pull mode can not have rate limit set"),
    "heartbeat_needs_push": (400, 10088, "consumer idle heartbeat requires a push based consumer"),
    "flow_control_needs_push": (400, 10089, "consumer flow control requires a push based consumer"),
    "direct_needs_push": (400, 10090, "consumer direct requires a push based consumer"),
    "direct_needs_ephemeral": (400, 10091, "consumer direct requires an ephemeral consumer"),
    "invalid_policy": (400, 10094, "{reason}"),
    "invalid_sampling": (400, 10095, "failed to parse consumer sampling configuration: {reason}"),
    "header_too_large": (400, 10097, "header size exceeds maximum allowed of 64k"),
    "workqueue_explicit_ack": (400, 10098, "workqueue stream requires explicit ack"),
    "workqueue_two_consumers": (400, 10099, "multiple non-filtered consumers not allowed on workqueue stream"),
    "workqueue_filter_not_unique": (400, 10100, "filtered consumer not unique on workqueue stream"),
    "workqueue_deliver_all": (400, 10101, "consumer must be deliver all on workqueue stream"),
    "consumer_name_too_long": (400, 10102, "consumer name is too long, maximum allowed is {limit}"),
    "consumer_name_invalid": (400, 10103, "durable name can not contain '.', '*', '>'"),
    "description_too_long": (400, 10107, "consumer description is too long, maximum allowed is {limit}"),
    "flow_control_needs_heartbeats": (400, 10108, "consumer with flow control also needs heartbeats"),
    "sealed": (400, 10109, "invalid operation on sealed stream"),
    "purge_failed": (500, 10110, "{reason}"),
    "rollup_failed": (500, 10111, "{reason}"),
    "deliver_subject_invalid": (400, 10112, "invalid push consumer deliver subject"),
    "max_bytes_required": (400, 10113, "account requires a stream config to have max bytes set"),
    "max_expires_too_small": (400, 10115, "consumer max request expires needs to be >= 1ms"),
    "max_deliver_below_backoff": (400, 10116, "max deliver is required to be > length of backoff values"),
    "max_ack_pending_excess": (400, 10121, "consumer max ack pending exceeds system limit of {limit}"),
    "max_stream_bytes": (400, 10122, "stream max bytes exceeds account limit max stream bytes"),
    "replicas_exceed_stream": (400, 10126, "consumer config replica count exceeds parent stream"),
    "stream_name_with_separator": (400, 10128, "Stream name can not contain path separators"),
    "consumer_name_with_separator": (400, 10127, "Consumer name can not contain path separators"),
    "filter_not_in_subject": (
        400, 10131, "Consumer create request did not match filtered subject from create subject",
    ),
    "name_is_not_durable_name": (400, 10132, "Consumer Durable and Name have to be equal if both are provided"),
    "replicas_negative": (400, 10133, "replicas count cannot be negative"),
    "replicas_unlike_stream": (
        400, 10134, "consumer config replicas must match interest retention stream's replicas",
    ),
    "consumer_metadata_too_large": (400, 10135, "consumer metadata exceeds maximum size of {limit}"),
    "two_kinds_of_filter": (400, 10136, "consumer cannot have both FilterSubject and FilterSubjects specified"),
    "filters_with_subject_api": (400, 10137, "consumer with multiple subject filters cannot use subject based API"),
    "filters_overlap": (400, 10138, "consumer subject filters cannot overlap"),
    "filter_empty": (400, 10139, "consumer filter in FilterSubjects cannot be empty"),
    "consumer_exists": (400, 10148, "consumer already exists"),
    "consumer_does_not_exist": (400, 10149, "consumer does not exist"),
    "inactive_threshold_excess": (400, 10153, "consumer inactive threshold exceeds system limit of {limit}"),
    "pedantic": (400, 10157, "pedantic mode: {reason}"),
    "priority_without_group": (400, 10159, "Setting PriorityPolicy requires at least one PriorityGroup to be set"),
    "no_such_group": (400, 10160, "Provided priority group does not exist for this consumer"),
    "group_name_empty": (400, 10161, "Group name cannot be an empty string"),
    "priority_with_push": (400, 10178, "priority groups can not be used with push consumers"),
    "group_name_invalid": (
        400, 10162, "Valid priority group name must match A-Z, a-z, 0-9, -_/=)+ and may not exceed 16 characters",
    ),
    "ttl_invalid": (400, 10165, "invalid per-message TTL"),
    "too_many_requests": (429, 10167, "too many requests"),
    "ttl_disabled": (400, 10166, "per-message TTL is disabled"),
    "counter_disabled": (400, 10168, "message counters is disabled"),
    "increment_missing": (400, 10169, "message counter increment is missing"),
    "counter_has_payload": (400, 10170, "message counter has payload"),
    "increment_invalid": (400, 10171, "message counter increment is invalid"),
    "counter_broken": (400, 10172, "message counter is broken"),
    "mirror_with_counters": (400, 10173, "stream mirrors can not also calculate counters"),
    "atomic_publish_disabled": (400, 10174, "atomic publish is disabled"),
    "wrong_last_sequence_constant": (400, 10164, "wrong last sequence"),
    "batch_sequence_missing": (400, 10175, "atomic publish sequence is missing"),
    "batch_incomplete": (400, 10176, "atomic publish batch is incomplete"),
    "batch_header_unsupported": (400, 10177, "atomic publish unsupported header used: {header}"),
    "batch_id_invalid": (400, 10179, "atomic publish batch ID is invalid"),
    "mirror_with_atomic": (400, 10198, "stream mirrors can not also use atomic publishing"),
    "batch_too_large": (400, 10199, "atomic publish batch is too large: {limit}"),
    "batch_commit_invalid": (400, 10200, "atomic publish batch commit is invalid"),
    "batch_duplicate": (400, 10201, "atomic publish batch contains duplicate message id"),
    "batch_too_many": (429, 10210, "atomic publish too many inflight"),
    "ack_wait_negative": (400, 10183, "consumer ack wait needs to be positive"),
    "backoff_negative": (400, 10184, "consumer backoff needs to be positive"),
    "api_level": (412, 10185, "JetStream minimum api level required"),
    "stream_offline": (500, 10194, "stream is offline: {reason}"),
    "schedules_disabled": (400, 10188, "message schedules is disabled"),
    "schedule_pattern": (400, 10189, "message schedules pattern is invalid"),
    "schedule_target": (400, 10190, "message schedules target is invalid"),
    "schedule_ttl": (400, 10191, "message schedules invalid per-message TTL"),
    "schedule_rollup": (400, 10192, "message schedules invalid rollup"),
    "schedule_source": (400, 10203, "message schedules source is invalid"),
    "schedule_scheduler": (400, 10212, "message schedules invalid scheduler"),
    "schedule_time_zone": (400, 10223, "message schedules time zone is invalid"),
    "sequence_for_subject_missing": (400, 10193, "missing sequence for expected last sequence per subject"),
    "priority_group_without_policy": (400, 10196, "consumer can not have priority groups when policy is none"),
    "pinned_ttl_without_policy": (400, 10197, "PinnedTTL cannot be set when PriorityPolicy is none"),
    "invalid_reset": (400, 10204, "invalid reset: {reason}"),
    "stream_create": (500, 10049, "{reason}"),
    "mirror_not_updatable": (400, 10055, "stream mirror configuration can not be updated"),
    "external_api_overlap": (400, 10021, "stream external api prefix {prefix} must not overlap with {subject}"),
    "external_deliver_overlap": (
        400, 10022, "stream external delivery prefix {prefix} overlaps with stream subject {subject}",
    ),
    "external_deliver_invalid": (400, 10024, "stream external delivery prefix {prefix} must not contain wildcards"),
    "mirror_message_size": (400, 10030, "stream mirror must have max message size >= source"),
    "mirror_with_sources": (400, 10031, "stream mirrors can not also contain other sources"),
    "mirror_consumer_setup": (500, 10029, "{reason}"),
    "source_consumer_setup": (500, 10045, "{reason}"),
    "source_message_size": (400, 10046, "stream source must have max message size >= target"),
    "source_duplicate": (400, 10140, "duplicate source configuration detected"),
    "source_name_invalid": (400, 10141, "sourced stream name is invalid"),
    "mirror_name_invalid": (400, 10142, "mirrored stream name is invalid"),
    "mirror_with_first_seq": (400, 10143, "stream mirrors can not have first sequence configured"),
    "source_filter_and_transforms": (
        400, 10144, "source with multiple subject transforms cannot also have a single subject filter",
    ),
    "source_transform_source": (400, 10145, "source transform source: invalid subject {subject}"),
    "source_transform": (400, 10146, "source transform: {reason}"),
    "source_filters_overlap": (400, 10147, "source filters can not overlap"),
    "mirror_filter_and_transforms": (
        400, 10150, "mirror with multiple subject transforms cannot also have a single subject filter",
    ),
    "mirror_transform_source": (400, 10151, "mirror transform source: invalid subject {subject}"),
    "mirror_filters_overlap": (400, 10152, "mirror subject filters can not overlap"),
    "mirror_transform": (400, 10154, "mirror transform: {reason}"),
    "stream_transform_source": (400, 10155, "stream transform source: invalid subject {subject}"),
    "stream_transform": (400, 10156, "stream transform: {reason}"),
    "mirror_with_schedules": (400, 10186, "stream mirrors can not also schedule messages"),
    "source_with_schedules": (400, 10187, "stream source can not also schedule messages"),
    "mirror_with_batches": (400, 10209, "stream mirrors can not also use batch publishing"),
    "mirror_consumer_invalid": (400, 10213, "stream mirror consumer config is invalid"),
    "mirror_consumer_needs_flow_acks": (400, 10214, "stream mirror consumer requires flow control ack policy"),
    "source_consumer_invalid": (400, 10215, "stream source consumer config is invalid"),
    "source_consumer_duplicate": (400, 10216, "duplicate stream source consumer detected"),
    "source_consumer_needs_flow_acks": (400, 10217, "stream source consumer requires flow control ack policy"),
    "flow_acks_need_push": (400, 10218, "flow control ack policy requires a push based consumer"),
    "flow_acks_need_flow_control": (400, 10219, "flow control ack policy requires flow control"),
    "flow_acks_need_pending": (400, 10220, "flow control ack policy requires max ack pending"),
    "flow_acks_without_wait": (400, 10221, "flow control ack policy requires unset ack wait"),
    "flow_acks_without_max_deliver": (400, 10222, "flow control ack policy requires unset max deliver"),
    "identity_mismatch": (400, 10225, "consumer's stream identity does not match: {identity}"),
    "source_header": (400, 10227, "message stream source header is not allowed"),
}  # fmt: skip


def api_error(name: str, **values: object) -> JetStreamError:
    """The error called `name` in the table, its text filled in with `values`."""
    code, err_code, text = ERRORS[name]
    return JetStreamError(code, err_code, text.format(**values) if values else text)


def store_reason(error: BaseException) -> str:
    """The reason that a client gets for an error of the store: never a path of the server, those are in its log."""
    if isinstance(error, OSError):
        return f"the store failed: {error.strerror or type(error).__name__}"
    if not isinstance(error, StorageError):
        return "internal error"
    return store_reason(error.__cause__) if isinstance(error.__cause__, OSError) else error.message


def store_error(error: StorageError) -> JetStreamError:
    """What a publisher hears: nats-server's answer to a full disk, and to everything else that a store may say."""
    if isinstance(error, DiskFull):
        return api_error("insufficient_resources", reason="no room on the server's disk")
    return api_error("store_failed", reason=f"stream store failed: {store_reason(error)}")
