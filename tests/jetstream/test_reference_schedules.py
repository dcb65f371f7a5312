"""Message schedules (ADR-51), held against the real nats-server: answers, errors, what is stored, and what comes when."""

import itertools
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.jetstream_twins import Publish, Servers, Twin, Twins

pytestmark = pytest.mark.interop

LATER = "@at 2100-01-01T00:00:00Z"
PATIENCE = 60.0  # seconds, for what is due within two


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with Servers.started(tmp_path_factory.mktemp("schedules")) as running:
        yield running


@pytest.fixture
def twins(servers: Servers) -> Iterator[Twins]:
    with servers.twins() as made:
        yield made


def schedule(subject: str, pattern: str, target: str, payload: bytes = b"body", /, **more: str) -> Publish:
    headers = {"Nats-Schedule": pattern, "Nats-Schedule-Target": target}
    headers |= {f"Nats-{name.replace('_', '-')}": value for name, value in more.items()}
    return Publish(subject, headers, payload)


def soon(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("@at %Y-%m-%dT%H:%M:%SZ")


def first_of(twin: Twin, stream: str, subject: str, sequence: int = 0) -> Any:
    """The first message on a subject, from a sequence on, once there is one."""
    wanted = json.dumps({"next_by_subj": subject, "seq": sequence}).encode()
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        answer = twin.ask(Publish(f"$JS.API.STREAM.MSG.GET.{stream}", {}, wanted)).shown
        if "message" in answer:
            return answer
        twin.settle()
        time.sleep(0.02)
    raise AssertionError(f"nothing on {subject} of {stream} at {twin.name}")


PATTERNS = """
    @at 2100-01-01T00:00:00Z|@at 2100-01-01T00:00:00+02:00|@at 2100-01-01T00:00:00.5Z|@at 2100-01-01T00:00:00,5Z
    @at 2100-01-01T1:00:00Z|@at 2100-01-01t00:00:00Z|@at 2100-01-01T00:00:00z|@at 2100-01-01T24:00:00Z|@at 2100-01-01
    @at 2100-02-30T00:00:00Z|@at 2100-01-01T00:00:60Z|@at yesterday|@at|@at |@at 2100-01-01T00:00:00+25:00
    @at 2100-01-01T00:00:00|@at  2100-01-01T00:00:00Z|@AT 2100-01-01T00:00:00Z|@at 0001-01-01T00:00:00Z
    @every 1h|@every 500ms|@every 1x|@every 1h30m5.5s|@every|@every |@every -1h|@every +1h|@every .5h|@every 1.h|@every 1
    @every 0|@every 999999999999h|@every 3600000000us|@every 3600000000µs|@every 1h 1m|@every 1d
    * * * * *|0 0 0 1 1 *|0 0 0 1 1 * *|60 0 0 1 1 *|0 60 0 1 1 *|0 0 24 1 1 *|0 0 0 0 1 *|0 0 0 32 1 *|0 0 0 1 13 *
    0 0 0 1 0 *|0 0 0 1 1 7|0 0 0 ? JAN MON|0 0 0 ? jan mon-fri|0 0 0 1-5 1 *|0 0 0 5-1 1 *|0 0 0 1-5/2 1 *|0 0 0 1/2 1 *
    0 0 0 1 1/0 *|0 0 0 1 1/x *|0 0 0 1 1/2/3 *|0 0 0 1-2-3 1 *|0 0 0 *-5 1 *|0 0 0 ?/40 1 *|0 0 0 1,2,,3 1 *|0 0 0 , 1 *
    0 0 0 30 2 *|0 0 0 29 2 *|0 0 0 +1 1 *|0 0 0 -1 1 *|0 0 0 L 1 *|0 0 0 1W 1 *|0 0 0 1 January *|0 0 0 1 1 sun#1
    0  0\t0 1 1 *| 0 0 0 1 1 * |00 00 00 01 01 00|0 0 0 1 1 *,2|0 0 0 15 6 1|0 0 0 ０ 1 *|0 0 0 1_0 1 *|0 0 0 1 1 */2
    @yearly|@annually|@monthly|@weekly|@daily|@midnight|@hourly|@Hourly|@nonsense|@yearly x|nonsense
"""


def test_every_pattern_is_taken_or_refused_alike(twins: Twins) -> None:
    twins.stream("S", allow_msg_schedules=True)
    patterns = [pattern for line in PATTERNS.strip().splitlines() for pattern in line.removeprefix("    ").split("|")]
    far = [p for p in patterns if not p.startswith(("@hourly", "0 0\t"))]
    twins.publish(*(schedule(f"s.{number}", pattern, "s.t") for number, pattern in enumerate(far)))
    twins.stored("S")


HEADERS = {
    "Schedule": (LATER, "nonsense", ""),
    "Schedule_Target": ("s.t", "s.1", "s.*", "other", "s..t", ""),
    "Schedule_Source": ("s.t", "s.1", "s.src", "other"),
    "Schedule_TTL": ("1h", "never", "500ms", ""),
    "Schedule_Rollup": ("sub", "all", ""),
    "Schedule_Time_Zone": ("Europe/Berlin", "Mars/One", ""),
    "Rollup": ("sub", "all", "SUB"),
    "TTL": ("1h", "x"),
    "Scheduler": ("s.1", "s.2", "s.plain", "s.*", "none", ""),
    "Schedule_Next": ("purge", "2100-01-01T00:00:00Z", "", "PURGE"),
    "Msg_Id": ("known",),
    "Expected_Last_Sequence": ("9",),
    "Stream_Source": ("O 1 > > o.1",),
}


# None of those that a machine may lack: Go's own or the package `tzdata` then have it, or one of them has.
ZONES = ("UTC", "Local", "+02:00", "Europe", "../UTC", "/UTC", "Etc/GMT+5", "GMT", "Europe/Berlin ", "zone.tab")


@pytest.mark.parametrize("config", [{"allow_msg_ttl": True}, {"allow_msg_schedules": False}])
def test_two_headers_get_the_same_answer_and_the_same_message(twins: Twins, config: dict[str, object]) -> None:
    twins.stream("S", **{"allow_msg_schedules": True, "allow_direct": True} | config)
    twins.publish(Publish("s.plain", {"Nats-Msg-Id": "known"}))
    base = {"Nats-Schedule": LATER, "Nats-Schedule-Target": "s.t"}
    for left, right in itertools.combinations(HEADERS, 2):
        for one, other in itertools.product(HEADERS[left], HEADERS[right]):
            headers = {f"Nats-{name.replace('_', '-')}": value for name, value in ((left, one), (right, other))}
            cron = {"Nats-Schedule": "0 0 0 1 1 *"} if "Time_Zone" in right else {}
            twins.publish(Publish("s.1", base | cron | headers, b"x"))
    for name, values in HEADERS.items():
        twins.publish(*(Publish("s.2", {f"Nats-{name.replace('_', '-')}": value}, b"x") for value in values))
    zoned = [schedule("s.3", "0 0 0 1 1 *", "s.t", Schedule_Time_Zone=zone) for zone in ZONES]
    twins.publish(*zoned, schedule("s.3", LATER, "s.t", Schedule_TTL="1h"))
    twins.api("STREAM.INFO.S", {"subjects_filter": ">"})
    twins.api("STREAM.MSG.GET.S", {"last_by_subj": "s.1"})


def test_what_a_schedule_brings_has_the_servers_headers(twins: Twins) -> None:
    names = ("AT", "PAST", "TWICE", "EVERY", "CRON", "SAMPLE", "NOSAMPLE", "ZONE", "BATCH", "MOVED")
    for name in names:
        config: dict[str, Any] = {"allow_msg_schedules": True, "allow_msg_ttl": True, "allow_direct": True}
        if name == "BATCH":
            config["allow_atomic"] = True
        if name == "MOVED":
            config |= {"subjects": ["moved.>"], "subject_transform": {"src": "moved.>", "dest": "there.>"}}
        twins.stream(name, **config)
    twins.listen("at.t")
    own = {"Nats-Msg-Id": "i1", "X-Mine": "kept", "Nats-Expected-Stream": "AT", "Nats-Schedule-TTL": "1m"}
    at = schedule("at.s", soon(2), "at.t")  # a full second, so one to two from now
    twins.publish(at._replace(headers={**at.headers, **own, "X-Last": "too"}))
    twins.publish(schedule("past.s", "@at 2020-01-01T00:00:00Z", "past.t", b"", Schedule_Rollup="sub"))
    moment = soon(4)  # far enough for a loaded machine to send both before it
    twins.publish(schedule("twice.s", moment, "twice.never"), schedule("twice.s", moment, "twice.t", b"second"))
    twins.publish(schedule("every.s", "@every 1s", "every.t", Schedule_Rollup="sub"))
    twins.publish(schedule("cron.s", "* * * * * *", "cron.t"))
    twins.publish(Publish("sample.data", {"H": "1", "Nats-Msg-Id": "no"}, b"live"))
    twins.publish(schedule("sample.s", "*/1 * * * * ?", "sample.t", Schedule_Source="sample.data"))
    twins.publish(schedule("nosample.s", "@every 1s", "nosample.t", Schedule_Source="nosample.data"))
    twins.publish(schedule("zone.s", "* * * * * *", "zone.t", Schedule_Time_Zone="Asia/Kolkata"))
    batch = {"Batch_Id": "q", "Batch_Sequence": "1", "Batch_Commit": "1"}
    twins.publish(schedule("batch.s", "@every 1s", "batch.t", **batch))
    twins.publish(schedule("moved.s", "@every 1s", "moved.t"))
    for name in names:
        target = f"{'there' if name == 'MOVED' else name.lower()}.t"
        real, ours = (first_of(twin, name, target) for twin in twins.both)
        for answer in (real, ours):
            if name == "EVERY":  # each takes the place of the one before it
                answer["message"].pop("seq")
        assert ours == real, name
    for name in ("AT", "PAST", "TWICE"):
        twins.stored(name)
    assert twins.taken("at.t") == []


def test_a_schedule_ends_with_its_message(twins: Twins) -> None:
    twins.stream("ENDS", allow_msg_schedules=True, subjects=["ends.>"])
    for number, way in enumerate(("purge", "delete", "plain", "client", "kept")):
        twins.publish(schedule(f"ends.{way}", "@every 4s", f"ends.t.{way}"))
        assert number < 5
    twins.api("STREAM.PURGE.ENDS", {"filter": "ends.purge"})
    twins.api("STREAM.MSG.DELETE.ENDS", {"seq": 2})
    twins.publish(Publish("ends.plain", {}, b"in its place"))
    twins.publish(Publish("ends.x", {"Nats-Scheduler": "ends.client", "Nats-Schedule-Next": "purge"}))
    for twin in twins.both:
        first_of(twin, "ENDS", "ends.t.kept")  # the last of them, all due at one time
    answer = twins.api("STREAM.INFO.ENDS", {"subjects_filter": "ends.t.>"})
    assert list(answer["state"]["subjects"]) == ["ends.t.kept"]


@pytest.mark.parametrize(
    "config",
    [
        {"discard": "new", "max_msgs": 5},
        {"retention": "interest"},
        {"retention": "workqueue"},
        {"storage": "memory"},
        {"deny_purge": True},
        {"pedantic": True},
        {"pedantic": True, "allow_rollup_hdrs": True},
        {"allow_msg_counter": True},
        {"mirror": {"name": "N"}, "subjects": []},
        {"sources": [{"name": "N"}]},
        {"allow_rollup_hdrs": True, "deny_purge": True},
    ],
)
def test_a_stream_with_schedules_may_be_configured_as_the_servers(twins: Twins, config: dict[str, object]) -> None:
    twins.stream("CFG", allow_msg_schedules=True, **config)
    named = {"name": "CFG", "subjects": ["cfg.>"]}
    twins.api("STREAM.UPDATE.CFG", {**named, "allow_msg_schedules": False})


def test_a_stream_gets_schedules_by_an_update_also_for_what_it_holds(twins: Twins) -> None:
    twins.stream("LATE", allow_direct=True)
    twins.publish(Publish("late.s", {"Nats-Schedule-Target": "late.t"}, b"none"))
    named = {"name": "LATE", "subjects": ["late.>"], "allow_msg_schedules": True}
    twins.api("STREAM.UPDATE.LATE", named)
    twins.publish(schedule("late.s", "@at 2020-01-01T00:00:00Z", "late.t"))
    real, ours = (first_of(twin, "LATE", "late.t") for twin in twins.both)
    assert ours == real
