"""Which event loop the command line runs on: where there is epoll the one that reads from links itself, else uvloop where
it is installed, else asyncio's own.
"""

import asyncio
import select
from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """For `asyncio.Runner(loop_factory=...)`; None stands for asyncio's own."""
    if hasattr(select, "epoll"):
        from headwater.net.direct_loop import DirectLoop

        return DirectLoop
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop
