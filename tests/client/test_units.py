"""Times are seconds or timedeltas in Python and nanoseconds on the wire; what can only be a mistake is refused."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.both_servers import Serve

import headwater
from headwater.client.configurations import ConsumerConfig, ConsumerLimits, SourceInfo, StreamConfig, StreamSource
from headwater.client.jetstream_types import decode_answer, encode_request
from headwater.client.key_value import BucketConfig
from headwater.client.object_store import StoreConfig
from headwater.client.stream_message import StreamMessage
from headwater.client.units import LONGEST, in_seconds, lifetime, nanoseconds
from headwater.errors import ConfigError, RemoteProtocolError
from headwater.model.message import Message

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (30, 30 * 10**9),
        (0.1, 10**8),
        (1.5, 1_500_000_000),
        (timedelta(minutes=2), 120 * 10**9),
        (1e-9, 1),
        (86_400.000001, 86_400_000_001_000),
    ],
)
def test_seconds_and_timedeltas_are_sent_as_nanoseconds(given: float | timedelta, sent: int) -> None:
    body = json.loads(encode_request({"config": ConsumerConfig(ack_wait=given, backoff=[given, 2])}))
    assert body["config"]["ack_wait"] == sent
    assert body["config"]["backoff"] == [sent, 2 * 10**9]
    assert json.loads(encode_request(StreamConfig(name="S", max_age=given)))["max_age"] == sent


def test_what_is_read_is_seconds_and_goes_back_as_it_came() -> None:
    answer = b'{"ack_wait":1500000000,"backoff":[1000000,2000000000],"opt_start_time":"2026-11-22T12:00:00Z"}'
    config = decode_answer(answer, ConsumerConfig, "it")
    assert (config.ack_wait, config.backoff, config.opt_start_time) == (1.5, [0.001, 2.0], "2026-11-22T12:00:00Z")
    assert json.loads(encode_request(config)) == {**json.loads(answer), "ack_policy": "explicit"}
    assert repr(config.ack_wait) == "1.5"


@given(st.integers(0, 10**15))  # 11 days to the nanosecond; a float of seconds holds no more digits beyond
def test_no_nanosecond_is_lost_on_the_way_through_a_float(wire: int) -> None:
    config = decode_answer(b'{"name":"S","max_age":%d}' % wire, StreamConfig, "it")
    assert json.loads(encode_request(config)).get("max_age", 0) == wire


@given(st.integers(0, 10**9 - 1), st.integers(0, 9999))
def test_decimal_fractions_are_sent_as_they_were_written(whole: int, fraction: int) -> None:
    text = f"{whole}.{fraction:04d}"
    assert nanoseconds(float(text)) == int(Decimal(text).scaleb(9))


def test_a_field_that_is_assigned_later_is_converted_too() -> None:
    config = ConsumerConfig()
    config.ack_wait = timedelta(seconds=5)
    config.backoff = [1, 2]
    assert json.loads(encode_request(config))["ack_wait"] == 5 * 10**9
    assert json.loads(encode_request({"config": config}))["config"]["backoff"] == [10**9, 2 * 10**9]
    config.ack_wait = -1
    with pytest.raises(ConfigError, match="ack_wait is negative"):
        encode_request(config)


def test_nested_configurations_and_replaced_ones_are_converted() -> None:
    config = StreamConfig(name="S", consumer_limits=ConsumerLimits(inactive_threshold=60))
    config = msgspec.structs.replace(config, duplicate_window=timedelta(seconds=1))
    assert json.loads(encode_request(config)) == {
        "name": "S",
        "duplicate_window": 10**9,
        "consumer_limits": {"inactive_threshold": 60 * 10**9},
    }


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (-1, "ack_wait is negative"),
        (timedelta(seconds=-1), "ack_wait is negative"),
        (30 * 10**9, "looks like nanoseconds"),
        (1_500_000_000, "looks like nanoseconds"),
        (30_000_000, None),  # 30 ms in nanoseconds, or 347 days: there is no telling
        (500_000_000, "longer than"),
        (float("nan"), "a time in seconds"),
        (float("inf"), "longer than"),
        (1e-12, "less than a nanosecond"),
        (True, "a time in seconds"),
        ("30s", "a time in seconds"),
        (b"30", "a time in seconds"),
    ],
)
def test_a_wait_that_can_only_be_a_mistake_is_refused_by_name(value: float, words: str | None) -> None:
    if words is None:
        assert ConsumerConfig(ack_wait=value).ack_wait == value
        return
    with pytest.raises(ConfigError, match=words):
        ConsumerConfig(ack_wait=value)


def test_the_refusal_of_nanoseconds_says_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r"for these nanoseconds write 30\b"):
        StreamConfig(name="S", max_age=30 * 10**9)
    with pytest.raises(ConfigError, match="ttl is in seconds"):
        BucketConfig(bucket="B", ttl=30 * 10**9)
    with pytest.raises(ConfigError, match="ttl is negative"):
        StoreConfig(bucket="B", ttl=-5)


def test_an_age_of_a_century_is_none_of_the_mistakes() -> None:
    century = 100 * 365 * 86_400
    assert StreamConfig(name="S", max_age=century).max_age == century
    with pytest.raises(ConfigError, match="longer than"):
        in_seconds(LONGEST + 1, "max_age")


def test_points_in_time_are_texts_or_aware_datetimes() -> None:
    assert ConsumerConfig(opt_start_time=NOON).opt_start_time == "2026-11-22T12:00:00+00:00"
    assert StreamSource(name="S", opt_start_time="2026-11-22T12:00:00Z").opt_start_time == "2026-11-22T12:00:00Z"
    with pytest.raises(ConfigError, match="no time zone"):
        ConsumerConfig(pause_until=NOON.replace(tzinfo=None))
    with pytest.raises(ConfigError, match="RFC 3339"):
        ConsumerConfig(opt_start_time=5)  # type: ignore[arg-type]


def test_never_stays_negative() -> None:
    assert decode_answer(b'{"name":"S","lag":0,"active":-1}', SourceInfo, "it").active == -1.0


def test_a_duration_that_is_none_is_the_servers_fault() -> None:
    with pytest.raises(RemoteProtocolError):
        decode_answer(b'{"name":"S","max_age":"1s"}', StreamConfig, "it")


@pytest.mark.parametrize(
    ("given", "header"),
    [(None, None), ("5s", "5s"), ("never", "never"), (5, "5s"), (1.5, "1.5s"), (timedelta(hours=1), "3600s")],
)
def test_the_lifetime_of_a_message_is_text_seconds_or_a_timedelta(
    given: str | float | timedelta | None, header: str | None
) -> None:
    assert lifetime(given) == header


@pytest.mark.parametrize("given", [0, -1, 5 * 10**9])
def test_a_lifetime_that_can_only_be_a_mistake_is_refused(given: float) -> None:
    with pytest.raises(ConfigError, match="ttl is"):
        lifetime(given)


class Kept:
    """A requester that keeps what is published."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def publish(self, subject: str, data: bytes) -> None:
        self.bodies.append(data)


async def _naks(kept: Kept) -> None:
    message = StreamMessage(kept, Message("s", b"", "$JS.ACK.S.C.1.1.1.1.0"))  # type: ignore[arg-type]
    for delay in (0, 2.5, timedelta(minutes=1)):
        await message.nak(delay)


def test_a_nak_is_delayed_by_seconds_or_a_timedelta() -> None:
    from support.scripted_server import finish

    kept = Kept()
    finish(_naks(kept))
    assert kept.bodies == [b"-NAK", b'-NAK {"delay":2500000000}', b'-NAK {"delay":60000000000}']


def test_the_server_and_the_program_mean_the_same_time(serve: Serve) -> None:
    from support.scripted_server import finish

    async def scenario() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            jetstream = client.jetstream()
            stream = await jetstream.create_stream(
                StreamConfig(name="UNITS", subjects=["units"], max_age=timedelta(days=7), duplicate_window=30)
            )
            assert (stream.config.max_age, stream.config.duplicate_window) == (7 * 86_400, 30.0)
            consumer = await jetstream.create_consumer(
                "UNITS", ConsumerConfig(durable_name="D", backoff=[0.5, timedelta(seconds=2)], max_deliver=3)
            )
            assert consumer.config.backoff == [0.5, 2.0]
            assert consumer.config.ack_wait == 0.5  # the server's rule: the first of the backoff
            await jetstream.delete_stream("UNITS")

    finish(scenario())
