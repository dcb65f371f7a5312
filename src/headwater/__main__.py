"""`python -m headwater`, and the program `headwater`: the first lines of ours that run, so nothing is imported before the
`try`. A SIGINT in the 30 ms before them finds only Python, which prints a traceback of its own.
"""

import gc
import sys


def main() -> int:
    """Run the command line; returns the exit status. A SIGINT ends it without a traceback, whatever is being imported."""
    try:
        if sys.argv[1:2] == ["serve"]:
            from headwater.serving.early_end import end_at_once

            end_at_once()
        gc.disable()  # imported objects stay: `headwater.cli.main` enables it
        from headwater.net.deferred_modules import RARELY_USED, defer

        defer(*RARELY_USED)
        from headwater.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return 0 if "serve" in sys.argv[1:2] else 130  # as headwater.cli.main has it


if __name__ == "__main__":
    sys.exit(main())
