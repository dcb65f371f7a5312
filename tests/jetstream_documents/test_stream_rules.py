"""What a stream may be: defaults filled in, limits that mean none, and what is not built refused by name."""

import sys

import msgspec
import pytest

from headwater.errors import JetStreamError
from headwater.jetstream_documents.stream_rules import (
    check_alone,
    check_tier,
    checked,
    same,
    shown_metadata,
    stored_metadata,
    updated,
)
from headwater.jetstream_documents.streams import Republish, StreamConfig


def config(**settings: object) -> StreamConfig:
    return msgspec.convert({"name": "S", "subjects": ["s.>"], **settings}, StreamConfig)


def refusal(**settings: object) -> tuple[int, str]:
    with pytest.raises(JetStreamError) as refused:
        checked(config(**settings))
    return refused.value.err_code, refused.value.description


@pytest.mark.parametrize(("max_age", "number"), [(1, 10052), (10**9, 10157)])
def test_a_pedantic_request_hears_first_that_its_max_age_is_too_short(max_age: int, number: int) -> None:
    with pytest.raises(JetStreamError) as refused:
        checked(config(max_age=max_age), pedantic=True)
    assert refused.value.err_code == number


def test_defaults_are_those_of_the_server() -> None:
    complete = checked(config(subjects=[], max_msgs=0, max_bytes=-7))
    assert complete.subjects == ["S"]
    assert (complete.max_msgs, complete.max_bytes, complete.num_replicas) == (-1, -1, 1)
    assert complete.duplicate_window == 120 * 10**9
    assert checked(config(max_age=10**10)).duplicate_window == 10**10
    assert same(complete, checked(complete))


@pytest.mark.parametrize(
    ("settings", "number"),
    [
        ({"name": ""}, 10052),
        ({"name": "a.b"}, 10052),
        ({"name": "a/b"}, 10128),
        ({"name": "x" * 256}, 10052),
        ({"description": "x" * 5000}, 10052),
        ({"num_replicas": -1}, 10133),
        ({"max_age": 5}, 10052),
        ({"max_age": 10**9, "duplicate_window": 10**10}, 10052),
        ({"subjects": ["a..b"]}, 10052),
        ({"subjects": ["a.>", "a.b"]}, 10052),
        ({"subjects": ["$JS.API.x"]}, 10052),
        ({"sealed": True}, 10052),
        ({"deny_purge": True, "allow_rollup_hdrs": True}, 10052),
    ],
)
def test_refusals_have_the_servers_numbers(settings: dict[str, object], number: int) -> None:
    assert refusal(**settings)[0] == number


def test_compression_without_its_library_is_refused_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked(config(compression="s2")).compression == "s2"
    monkeypatch.setitem(sys.modules, "cramjam", None)
    number, reason = refusal(compression="s2")
    assert (number, "headwater[compression]" in reason) == (10052, True)
    assert checked(config(compression="s2", storage="memory")).compression == "s2", "where it means nothing"


def test_an_update_keeps_what_cannot_change() -> None:
    old = checked(config())
    assert updated(old, config(max_msgs=5)).max_msgs == 5
    for change in ({"storage": "memory"}, {"retention": "workqueue"}, {"num_replicas": 3}):
        with pytest.raises(JetStreamError):
            updated(old, checked(config(**change), sealing=True))
    sealed = updated(old, checked(config(sealed=True), sealing=True))
    with pytest.raises(JetStreamError, match="unseal"):
        updated(sealed, checked(config(), sealing=True))


def test_one_server_holds_one_copy() -> None:
    with pytest.raises(JetStreamError) as refused:
        check_alone(checked(config(num_replicas=3)))
    assert refused.value.err_code == 10074


def test_republishing_into_itself_is_refused() -> None:
    assert checked(config(republish=Republish(src=">", dest="copy.>"))).republish is not None
    assert refusal(republish=Republish(src=">", dest="s.>"))[0] == 10052


def test_the_sync_policy_is_shown_where_an_ack_means_less_and_never_stored() -> None:
    assert "_headwater.sync" not in shown_metadata({"own": "1"})
    shown = shown_metadata({"own": "1"}, "interval")
    assert shown["_headwater.sync"] == "interval"
    assert shown["_nats.ver"]
    assert {key for key in stored_metadata(shown) if not key.startswith("_nats.req")} == {"own"}


def test_an_account_with_limits_by_replicas_takes_only_those_numbers() -> None:
    check_tier(3, ())
    check_tier(0, ("R1",))
    with pytest.raises(JetStreamError) as refused:
        check_tier(3, ("R1", "R2"))
    assert refused.value.err_code == 10120
