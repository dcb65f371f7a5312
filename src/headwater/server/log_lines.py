"""Log lines as nats-server writes them, because scripts look for them: `[pid] 2026/11/21 08:30:00.123456 [INF] text`."""

import logging
import os
import time

_LEVELS = {
    5: "TRC",
    logging.DEBUG: "DBG",
    logging.INFO: "INF",
    logging.WARNING: "WRN",
    logging.ERROR: "ERR",
    logging.CRITICAL: "FTL",
}


class NatsLogFormatter(logging.Formatter):
    """One line a record; `with_time` and `utc` as the fields logtime and logtime_utc say.

    Control characters are escaped: a client's name or subject must not forge a line.
    """

    def __init__(self, *, with_time: bool = True, utc: bool = False) -> None:
        super().__init__()
        self.with_time = with_time
        self.utc = utc
        self._process = os.getpid()

    def format(self, record: logging.LogRecord) -> str:
        level = _LEVELS.get(record.levelno, "INF")
        text = _printable(record.getMessage())
        line = f"[{self._process}] {self._moment(record.created)}[{level}] {text}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line

    def _moment(self, seconds: float) -> str:
        if not self.with_time:
            return ""
        parts = time.gmtime(seconds) if self.utc else time.localtime(seconds)
        return f"{time.strftime('%Y/%m/%d %H:%M:%S', parts)}.{int(seconds % 1 * 1_000_000):06d} "


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii") for c in text)
