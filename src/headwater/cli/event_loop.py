"""Which event loop the command line runs on: uvloop where it is installed, asyncio's own otherwise."""

import asyncio
from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """For `asyncio.Runner(loop_factory=...)`; None stands for asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop
