"""SIGINT while a server is still starting: it ends at once, with status 0 and without a word.

A KeyboardInterrupt would do between two lines of ours. But Python raises it wherever it is, and what is raised in a callback
of an import, or while an event loop is half made, is printed as ignored, and then the server starts all the same.

Nothing is open yet that has to be closed: `serving.run` has handlers of its own before it opens a store or a port.
"""

import os
import signal


def end_at_once() -> None:
    """Let SIGINT end this process with status 0, unless it is ignored, as a shell has it for jobs in the background.

    Whoever starts servers may block it until now (`env --block-signal=INT headwater serve`): before, Python prints a
    traceback of its own.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(0))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
