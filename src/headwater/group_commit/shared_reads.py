"""The logs of one event loop share a limit of files that are open for reading (`streams/read_handles.py`)."""

import asyncio
from weakref import WeakKeyDictionary

from headwater.streams.log import Log
from headwater.streams.read_handles import ReadHandles

_HANDLES: WeakKeyDictionary[asyncio.AbstractEventLoop, ReadHandles] = WeakKeyDictionary()


def share_reads(log: Log) -> None:
    """From now on this log keeps to the limit of all logs that the running loop serves; only there may it be read."""
    loop = asyncio.get_running_loop()
    found = _HANDLES.get(loop)
    if found is None:
        found = _HANDLES[loop] = ReadHandles()
    log.reader.handles = found
