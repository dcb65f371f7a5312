"""What a consumer may be: the server's defaults, its refusals, and what an update may not touch."""

import msgspec
import pytest

from headwater.errors import JetStreamError
from headwater.jetstream_documents.consumer_rules import (
    check_beside,
    check_name,
    check_reset,
    checked,
    filters_of,
    updated,
    with_patience,
)
from headwater.jetstream_documents.consumers import ConsumerConfig
from headwater.jetstream_documents.streams import StreamConfig

SECOND = 10**9


def stream(**settings: object) -> StreamConfig:
    return msgspec.convert({"name": "S", "subjects": ["s.>"], **settings}, StreamConfig)


def config(**settings: object) -> ConsumerConfig:
    return msgspec.convert({"ack_policy": "none", **settings}, ConsumerConfig)


def test_defaults_depend_on_acks_and_on_who_is_asked() -> None:
    explicit = checked(config(ack_policy="explicit"), stream())
    assert (explicit.ack_wait, explicit.max_ack_pending, explicit.max_waiting) == (30 * SECOND, 1000, 512)
    assert with_patience(explicit, durable=False).inactive_threshold == 5 * SECOND
    assert with_patience(explicit, durable=True).inactive_threshold == 0
    without = checked(config(ack_policy="none"), stream())
    assert (without.ack_wait, without.max_ack_pending) == (0, 0)
    assert (
        checked(config(ack_policy="explicit", backoff=[SECOND, 2 * SECOND], max_deliver=5), stream()).ack_wait == SECOND
    )


def test_the_streams_consumer_limits_are_defaults() -> None:
    limited = stream(consumer_limits={"max_ack_pending": 7, "inactive_threshold": 9 * SECOND})
    made = checked(config(ack_policy="explicit"), limited)
    assert (made.max_ack_pending, made.inactive_threshold) == (7, 9 * SECOND)


@pytest.mark.parametrize(
    ("settings", "number"),
    [
        ({"deliver_subject": "a.*"}, 10079),
        ({"deliver_subject": "a", "max_waiting": 5}, 10080),
        ({"deliver_subject": "s.x"}, 10081),
        ({"deliver_subject": "a", "idle_heartbeat": 5}, 10083),
        ({"deliver_subject": "a", "flow_control": True}, 10108),
        ({"rate_limit_bps": 5}, 10086),
        ({"idle_heartbeat": SECOND}, 10088),
        ({"flow_control": True}, 10089),
        ({"opt_start_seq": 5}, 10094),
        ({"deliver_policy": "by_start_sequence"}, 10094),
        ({"backoff": [SECOND] * 3, "max_deliver": 2, "ack_policy": "explicit"}, 10116),
        ({"filter_subject": "s.a", "filter_subjects": ["s.b"]}, 10136),
        ({"filter_subjects": ["s.a", "s.*"]}, 10138),
        ({"filter_subjects": [""]}, 10139),
        ({"ack_wait": -1}, 10183),
        ({"backoff": [-1]}, 10184),
        ({"deliver_subject": "a..b"}, 10112),
        ({"deliver_subject": "a", "max_ack_pending": 5}, 10082),
        ({"deliver_subject": "a", "direct": True, "durable_name": "d"}, 10091),
        ({"num_replicas": 2}, 10126),
        ({"name": "a", "durable_name": "b"}, 10132),
        ({"priority_timeout": 5}, 10197),
        ({"metadata": {"a": "x" * 200_000}}, 10135),
        ({"description": "x" * 5000}, 10107),
    ],
)
def test_refusals_have_the_servers_numbers(settings: dict[str, object], number: int) -> None:
    with pytest.raises(JetStreamError) as refused:
        checked(config(**settings), stream())
    assert refused.value.err_code == number


def test_the_streams_limits_for_consumers_hold() -> None:
    limited = stream(consumer_limits={"max_ack_pending": 7, "inactive_threshold": 9 * SECOND})
    for settings, number in (({"max_ack_pending": 8}, 10121), ({"inactive_threshold": 10 * SECOND}, 10153)):
        with pytest.raises(JetStreamError) as refused:
            checked(config(ack_policy="explicit", **settings), limited)
        assert refused.value.err_code == number


@pytest.mark.parametrize(
    ("settings", "sequence", "allowed"),
    [
        ({}, 1, True),
        ({"deliver_policy": "new"}, 1, False),
        ({"deliver_policy": "by_start_sequence", "opt_start_seq": 5}, 4, False),
        ({"deliver_policy": "by_start_sequence", "opt_start_seq": 5}, 5, True),
        ({"deliver_policy": "by_start_time", "opt_start_time": "2020-01-01T00:00:00Z"}, 6, False),
        ({"deliver_policy": "by_start_time", "opt_start_time": "2020-01-01T00:00:00Z"}, 7, True),
    ],
)
def test_a_reset_goes_not_below_where_the_consumer_was_to_begin(
    settings: dict[str, object], sequence: int, allowed: bool
) -> None:
    if allowed:
        check_reset(config(**settings), sequence, 7)
        return
    with pytest.raises(JetStreamError) as refused:
        check_reset(config(**settings), sequence, 7)
    assert refused.value.err_code == 10204


def test_filters_may_cross_but_not_contain_each_other() -> None:
    assert checked(config(filter_subjects=["s.*.b", "s.a.*"]), stream()).filter_subjects
    for pair in (["s.*.b", "s.a.b"], ["s.>", "s.*"], ["s.a", "s.a"]):
        with pytest.raises(JetStreamError):
            checked(config(filter_subjects=pair), stream())


def test_a_work_queue_gives_each_message_to_one() -> None:
    queue = stream(retention="workqueue")
    whole = checked(config(ack_policy="explicit"), queue)
    part = checked(config(ack_policy="explicit", filter_subject="s.a"), queue)
    check_beside(part, [checked(config(ack_policy="explicit", filter_subject="s.b"), queue)])
    for new, there in ((whole, whole), (part, part)):
        with pytest.raises(JetStreamError):
            check_beside(new, [there])


def test_an_update_may_not_touch_where_it_began_or_what_it_is() -> None:
    old = checked(config(ack_policy="explicit"), stream())
    assert updated(old, msgspec.structs.replace(old, max_ack_pending=5)).max_ack_pending == 5
    for change in ({"ack_policy": "none"}, {"deliver_policy": "new"}, {"deliver_subject": "a"}, {"max_waiting": 3}):
        with pytest.raises(JetStreamError) as refused:
            updated(old, msgspec.structs.replace(old, **change))
        assert refused.value.err_code == 10012


@pytest.mark.parametrize("name", ["", "a.b", "a b", "*", ">", "a/b", "x" * 256])
def test_names_that_cannot_be_a_token_are_refused(name: str) -> None:
    with pytest.raises(JetStreamError):
        check_name(name)


def test_filters_are_one_or_many() -> None:
    assert filters_of(config(filter_subject="a")) == [b"a"]
    assert filters_of(config(filter_subjects=["a", "b"])) == [b"a", b"b"]
    assert filters_of(config()) == []
