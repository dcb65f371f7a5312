"""The event loop of the command line: with epoll, the one that reads from links itself; else uvloop if it is installed;
else asyncio's own.
"""

import asyncio
import select
from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """For `asyncio.Runner(loop_factory=...)`; None means asyncio's own loop."""
    if hasattr(select, "epoll"):
        from headwater.net.direct_loop import DirectLoop

        return DirectLoop
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop
