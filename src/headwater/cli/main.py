"""The `headwater` command: the first word chooses a verb, and only what that verb needs is imported.

A verb is a row of VERBS: its function (`module:function`) and its meaning. The function takes the words after the verb and
returns the exit status. No framework is used here: `serve` has to accept connections within 150 ms, and importing a
command-line library alone takes longer. A verb may import one for itself.
"""

import gc
import sys
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from headwater import __version__
from headwater.cli.connection_flags import verb_first
from headwater.errors import HeadwaterError
from headwater.net.lean_imports import import_asyncio, import_msgspec

INTERRUPTED = 130  # the status that shells report after SIGINT
PIPE_CLOSED = 141  # and after SIGPIPE


class Verb(NamedTuple):
    """`target` is `module:function`, imported when the verb is called; the function is `(list[str]) -> int`."""

    target: str
    meaning: str


VERBS = {
    "account": Verb("headwater.cli.nats_backup:account", "the account: info, backup, restore"),
    "bench": Verb("headwater.cli.nats_bench:bench", "measure a server with this client, in the words of `nats bench`"),
    "completion": Verb("headwater.cli.completion:main", "`completion bash|zsh|fish`: a script for the shell's TAB key"),
    "config": Verb(
        "headwater.serving.config_check:main", "`config check FILE`: what is wrong with a configuration file"
    ),
    "consumer": Verb(
        "headwater.cli.nats_consumers:consumer", "consumers: add, edit, ls, info, next, sub, pause, rm, …"
    ),
    "context": Verb("headwater.cli.nats_context:context", "named connections, shared with the `nats` tool: add, ls, …"),
    "demo": Verb("headwater.cli.demo:main", "the main job: events through a broker and a stream into Spark tables"),
    "dev": Verb("headwater.cli.dev:main", "`dev --nodes 3`: a local cluster to try things out on"),
    "doctor": Verb("headwater.cli.doctor:main", "what this machine has, and how fast its disk syncs"),
    "events": Verb(
        "headwater.cli.nats_watch:events", "advisories of streams; to the system account, who comes and goes"
    ),
    "kv": Verb("headwater.cli.nats_kv:kv", "key-value buckets: add, put, get, ls, watch, …"),
    "log": Verb("headwater.cli.log_tools:main", "`log inspect|verify|repair DIR`: the logs of a store, offline"),
    "micro": Verb("headwater.cli.nats_service:service", "the same as `service`"),
    "object": Verb("headwater.cli.nats_object:objects", "object stores: add, put, get, ls, info, watch, seal, …"),
    "pipeline": Verb("headwater.cli.pipeline:main", "`pipeline run FILE`: a stream into Spark tables until stopped"),
    "pub": Verb("headwater.cli.nats_messages:pub", "publish a message"),
    "pyspark": Verb(
        "headwater.cli.spark_commands:shell", "Spark's Python shell, with a Java found and Headwater on board"
    ),
    "reply": Verb("headwater.cli.nats_messages:reply", "answer requests"),
    "request": Verb("headwater.cli.nats_messages:request", "ask, and print the answer"),
    "rtt": Verb("headwater.cli.nats_messages:rtt", "how long a round trip to the server takes"),
    "serve": Verb("headwater.serving.command:main", "run the broker, with nats-server's flags and configuration files"),
    "server": Verb(
        "headwater.cli.nats_server:server", "servers: info, list, ping, report; check for monitoring systems"
    ),
    "service": Verb("headwater.cli.nats_service:service", "services (micro): ls, info, stats, ping, serve"),
    "spark-classes": Verb("headwater.spark.class_archive:command", "keep Spark's classes: it starts in half the time"),
    "spark-env": Verb(
        "headwater.cli.spark_commands:print_environment", "what Spark's own commands need, for a shell's eval"
    ),
    "spark-submit": Verb(
        "headwater.cli.spark_commands:submit", "Spark's spark-submit, with a Java found and Headwater on board"
    ),
    "store": Verb(
        "headwater.cli.store_import:main",
        "`store import DIR`: the streams of a nats-server; `store spread DIR`: of ours, over workers",
    ),
    "stream": Verb(
        "headwater.cli.nats_streams:stream", "streams: add, edit, ls, info, view, purge, backup, restore, …"
    ),
    "sub": Verb("headwater.cli.nats_messages:sub", "print what comes on a subject"),
    "top": Verb("headwater.cli.top:main", "a live view of one broker, from its monitoring port"),
    "trace": Verb("headwater.cli.nats_trace:trace", "the way of a message through the servers, like `nats trace`"),
    "traffic": Verb("headwater.cli.nats_watch:traffic", "messages and bytes a second of every server"),
    "version": Verb("headwater.cli.main:print_version", "the version, and whether the hot modules are compiled"),
}


def main(argv: list[str] | None = None) -> int:
    """Run one verb; returns the exit status: 2 for a wrong command line, 1 for a HeadwaterError."""
    arguments = verb_first(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    name = "version" if arguments[0] == "--version" else arguments[0]
    verb = VERBS.get(name)
    if verb is None:
        print(f"headwater: there is no verb {name!r}{_meant(name)} (`headwater --help` lists them)", file=sys.stderr)
        return 2
    try:
        status: int = _function(verb)(arguments[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # `headwater stream ls | head`: the reader has closed the pipe
        _forget_stdout()
        return PIPE_CLOSED
    except KeyboardInterrupt:  # before the verb installs a handler, or when it has none
        return 0 if name == "serve" else INTERRUPTED  # a server stopped by SIGINT has ended normally
    except HeadwaterError as error:
        print(as_json(error) if is_json(arguments) else f"headwater {name}: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as missing:
        if missing.name != "rich":
            raise
        print(f"headwater {name}: needs {missing.name} (pip install 'headwater[cli]')", file=sys.stderr)
        return 1
    if argv is None and name == "serve":
        _leave(status)
    return status


def is_json(arguments: list[str]) -> bool:
    """Whether the command line requests JSON."""
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in before or "-j" in before


def as_json(error: HeadwaterError) -> str:
    """An error as one line of JSON: its type, message, hint, whether it is retriable, and the numbers of JetStream's
    errors."""
    import json

    document: dict[str, object] = {"type": type(error).__name__, "message": error.message, "retriable": error.retriable}
    document |= {name: getattr(error, name) for name in ("code", "err_code", "hint") if getattr(error, name, None)}
    return json.dumps({"error": document})


def _forget_stdout() -> None:
    """Discard what is still buffered, so that the interpreter reports no error when it exits."""
    import os

    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # some embeddings have no such file
        sys.stdout = None


def _leave(status: int) -> None:
    """End this process, whose sockets and files are closed, at once: a script that saw the last connection close may start
    another server. Unloading modules would take the interpreter 10 to 40 ms; nats-server exits within one or two.
    """
    import logging
    import os

    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _meant(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, VERBS, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _function(verb: Verb) -> Callable[[list[str]], int]:
    module, _, name = verb.target.partition(":")
    if module.startswith("headwater.cli.nats_"):
        import_asyncio()
        import_msgspec()
    gc.disable()  # imported objects stay alive: collecting garbage among them is a twentieth of the start of `serve`
    try:
        function: Callable[[list[str]], int] = getattr(import_module(module), name)
    finally:
        gc.freeze()  # otherwise the next object that is made lets the collector look at all of them
        gc.enable()
    return function


def usage() -> str:
    """The help text with one verb per line."""
    width = max(len(name) for name in VERBS)
    lines = [f"  {name:<{width}}  {verb.meaning}" for name, verb in VERBS.items()]
    return "\n".join(["usage: headwater VERB [arguments]; `headwater VERB --help` says more", "", *lines])


def print_version(argv: list[str]) -> int:
    """The verb `version`."""
    if argv in (["--json"], ["-j"]):
        import headwater

        print(f'{{"version": "{__version__}", "compiled": {str(headwater.__compiled__).lower()}}}')
        return 0
    if argv:
        print("usage: headwater version [--json]", file=sys.stdout if argv[0] in ("-h", "--help") else sys.stderr)
        return 0 if argv[0] in ("-h", "--help") else 2
    print(version())
    return 0


def version() -> str:
    """`headwater 0.1.0 (compiled)`, or `(interpreted)`."""
    import headwater

    return f"headwater {__version__} ({'compiled' if headwater.__compiled__ else 'interpreted'})"
