"""Log lines look like nats-server's."""

import logging
import os
import re

from headwater.server.log_lines import NatsLogFormatter


def record(text: str, level: int = logging.INFO) -> logging.LogRecord:
    made = logging.LogRecord("headwater", level, __file__, 1, text, (), None)
    made.created = 1_795_249_808.123456
    return made


def test_a_line_has_process_time_level_and_text() -> None:
    line = NatsLogFormatter().format(record("Server is ready"))
    assert re.fullmatch(r"\[\d+] \d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.123456 \[INF] Server is ready", line)
    assert line.startswith(f"[{os.getpid()}] ")


def test_levels_have_three_letters() -> None:
    levels = [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL]
    assert [NatsLogFormatter(with_time=False).format(record("x", level)).split()[1] for level in levels] == [
        "[DBG]", "[INF]", "[WRN]", "[ERR]", "[FTL]",
    ]  # fmt: skip


def test_the_time_can_be_left_out_or_be_utc() -> None:
    assert NatsLogFormatter(with_time=False).format(record("x")) == f"[{os.getpid()}] [INF] x"
    assert "2026/11/21 08:30:08.123456" in NatsLogFormatter(utc=True).format(record("x"))


def test_a_message_cannot_forge_a_line() -> None:
    line = NatsLogFormatter(with_time=False).format(record("name=a\n[1] [INF] b\x1b[31m\udcff"))
    assert line.endswith("[INF] name=a\\n[1] [INF] b\\x1b[31m\\udcff")
