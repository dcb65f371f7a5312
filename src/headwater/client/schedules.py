"""Messages that a stream stores later (`allow_msg_schedules`, ADR-51 of NATS): when, and under which subject.

    tomorrow = Schedule(target="orders.due", at=datetime(2030, 1, 1, 8, tzinfo=UTC))
    hourly = Schedule(target="load.hourly", cron="@hourly", source="load.now")
    await jetstream.publish("timers.a", b"payload", schedule=tomorrow)

The schedule is the message on `timers.a`: publishing there again replaces it, purging or deleting the message ends it.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from headwater.client.units import Lifetime, lifetime
from headwater.errors import ConfigError
from headwater.model.header_names import NatsHeader

_MICROSECOND = timedelta(microseconds=1)


class Schedule(NamedTuple):
    """One of `at` (a time with its zone), `every` (a second or more), and `cron` (six fields, seconds first, or
    `@daily` and the like; in `time_zone`, an IANA name, or UTC) sets the time. The message stored then goes to
    `target`, with the payload and headers of the schedule, or those of the last message on `source`. `ttl`: how long
    each lives: seconds, a timedelta, "5s" or "never"; `rollup`: each replaces those before it."""

    target: str
    at: datetime | None = None
    every: timedelta | None = None
    cron: str = ""
    time_zone: str = ""
    source: str = ""
    ttl: Lifetime = ""
    rollup: bool = False

    def headers(self) -> dict[str, str]:
        """The headers of a message that is this schedule. Raises ConfigError unless exactly one time is set."""
        patterns = [text for text in (_at(self.at), _every(self.every), self.cron) if text]
        if len(patterns) != 1:
            raise ConfigError("a schedule has one of at, every and cron", value=patterns)
        named: dict[str, str] = {
            NatsHeader.SCHEDULE: patterns[0],
            NatsHeader.SCHEDULE_TARGET: self.target,
            NatsHeader.SCHEDULE_TIME_ZONE: self.time_zone,
            NatsHeader.SCHEDULE_SOURCE: self.source,
            NatsHeader.SCHEDULE_TTL: lifetime(self.ttl) or "",
            NatsHeader.SCHEDULE_ROLLUP: "sub" if self.rollup else "",
        }
        return {name: value for name, value in named.items() if value}


def _at(moment: datetime | None) -> str:
    if moment is None:
        return ""
    if moment.utcoffset() is None:
        raise ConfigError("the time of a schedule has no zone", value=moment.isoformat(), hint="give it a tzinfo")
    return f"@at {moment.isoformat()}"


def _every(interval: timedelta | None) -> str:
    return "" if interval is None else f"@every {interval // _MICROSECOND}us"
