"""Record whether and when a micro-batch was begun, in a small file beside the checkpoint.

    <checkpoint>/headwater-sink/begun    {"batch": 7, "at": 1763701776.25}

Spark plans the sink anew for each micro-batch, on the driver, after it has written the batch to the checkpoint's `offsets`
and before any of its tasks runs. The file is on disk before the first row can be stored, so a batch without a record was
never begun. There is no record for a checkpoint that is not a local directory, or for a query that writes its offsets later
(`asyncProgressTrackingEnabled`).
"""

import json
import logging
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

logger = logging.getLogger(__name__)

RECORD = Path("headwater-sink") / "begun"


class Attempt(NamedTuple):
    """An attempt at a batch. `since`: the start of its first attempt, in seconds since 1970 by the driver's clock. `first`:
    this is the first attempt."""

    batch: int
    since: float
    first: bool


def recorded(given: Mapping[str, str], exactly_once: bool, now: float) -> Attempt | None:
    """Record an attempt at the newest batch of a streaming query with the options `given`; None if it cannot be recorded.
    With `exactly_once` this is then logged once per process and checkpoint.
    """
    options = {name.lower(): value for name, value in given.items()}
    checkpoint = options.get("checkpointlocation", "")
    is_late = options.get("asyncprogresstrackingenabled", "").lower() == "true"  # the batch may not be in `offsets` yet
    attempt = None if is_late else begin(checkpoint, now)
    if attempt is None and exactly_once:
        warn_without_record(checkpoint)
    return attempt


@cache
def warn_without_record(checkpoint: str) -> None:
    """Log what is weaker without a record, and what a record requires."""
    logger.warning(
        "sink_without_record checkpoint=%s: no attempt at a batch is recorded, so one that runs again after the duplicate "
        "window is noticed from the stream's last messages only; a record takes a checkpoint in a local directory and no "
        "asyncProgressTrackingEnabled",
        checkpoint,
    )


def begin(checkpoint: str, now: float) -> Attempt | None:
    """Record that the newest batch of the checkpoint begins now, or find that it began before. None if it cannot be
    recorded: there is no local directory, or no batch planned in it.
    """
    directory = local_directory(checkpoint)
    batch = newest_batch(directory) if directory is not None else None
    if directory is None or batch is None:
        return None
    path = directory / RECORD
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if known["batch"] == batch:
            return Attempt(batch, float(known["at"]), first=False)
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("sink_record_unreadable path=%s: %s", path, error)
        return None
    try:
        write_durably(path, json.dumps({"batch": batch, "at": now}))
    except OSError as error:
        logger.warning("sink_record_not_written path=%s: %s", path, error)
        return None
    return Attempt(batch, now, first=True)


def local_directory(checkpoint: str) -> Path | None:
    """The directory at a checkpoint location, if it is on this machine."""
    parts = urlsplit(checkpoint)
    if parts.scheme not in ("", "file"):
        return None
    path = Path(unquote(parts.path) if parts.scheme else checkpoint)
    return path if checkpoint and path.is_dir() else None


def newest_batch(directory: Path) -> int | None:
    """The batch planned last."""
    try:
        names = [entry.name for entry in (directory / "offsets").iterdir()]
    except OSError:
        return None
    return max((int(name) for name in names if name.isdigit()), default=None)


def write_durably(path: Path, text: str) -> None:
    """Replace the file at `path`, which is on disk when this returns. Raises OSError."""
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_suffix(".new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    for directory in (path.parent, path.parent.parent):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
