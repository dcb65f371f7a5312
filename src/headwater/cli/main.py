"""The `headwater` command: the first word chooses a verb, and only what that verb needs is imported.

A verb is a module with `main(argv) -> int`, the exit status. There is no framework in between: `serve` has to accept
connections within 300 ms, and a command-line library alone costs half of that to import.
"""

import sys
from importlib import import_module

from headwater import __version__
from headwater.errors import HeadwaterError

VERBS = {
    "demo": "the main job: events through a broker and a stream into Spark tables",
    "doctor": "what this machine has, and how fast its disk syncs",
    "serve": "run the broker, with nats-server's flags",
    "version": "the version, and whether the hot modules are compiled",
}


def main(argv: list[str] | None = None) -> int:
    """Run one verb; returns the exit status: 2 for a wrong command line, 1 for an error that Headwater foresees."""
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    verb = arguments[0]
    if verb in ("version", "--version"):
        print(version())
        return 0
    if verb not in VERBS:
        print(f"headwater: there is no verb {verb!r}\n{usage()}", file=sys.stderr)
        return 2
    try:
        status: int = import_module(f"headwater.cli.{verb}").main(arguments[1:])
    except HeadwaterError as error:
        print(f"headwater {verb}: {error}", file=sys.stderr)
        return 1
    return status


def usage() -> str:
    """The verbs, one a line."""
    lines = [f"  {verb:<8} {meaning}" for verb, meaning in VERBS.items()]
    return "\n".join(["usage: headwater VERB [arguments]; `headwater VERB --help` says more", "", *lines])


def version() -> str:
    """`headwater 0.1.0 (compiled)`, or `(interpreted)`."""
    import headwater

    return f"headwater {__version__} ({'compiled' if headwater.__compiled__ else 'interpreted'})"
