"""SIGINT while a server is still starting: it exits at once, silently, with status 0.

A KeyboardInterrupt would work between two statements of ours. But Python raises it anywhere, and when it is raised in a
callback of an import, or in a half-constructed event loop, it is printed as ignored, and the server starts after all. No
resource needs closing at this point: `process.run` installs its own handlers before it opens a store or a port.
"""

import os
import signal


def end_at_once() -> None:
    """Let SIGINT end this process with status 0, unless it is ignored, as a shell does for background jobs. A program that
    starts servers may block the signal until now (`env --block-signal=INT headwater serve`), because earlier on Python
    prints a traceback of its own.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(0))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
