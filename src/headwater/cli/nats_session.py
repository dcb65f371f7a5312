"""Shared by all client commands: the connection options of the `nats` tool, tables, JSON, durations and sizes.

The `nats` tool accepts its connection options anywhere on the line, before and after the command, and so do we. They are
removed first; the rest belongs to the command. As in the `nats` tool, the selected NATS context applies.

What happens to the connection while a command waits is one line on stderr, as its errors are: a lost connection, a new
one, a refusal. A refusal that also ends the command is printed once.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from headwater.cli.commands import Commands, Exit, UsageError
from headwater.cli.connection_flags import WITH_VALUE, WITHOUT_VALUE
from headwater.client.client import Client, connect_with
from headwater.client.contexts import NatsContext, chosen_context, find_options, read_context
from headwater.client.options import ClientOptions, ConnectArguments
from headwater.client.units import SECOND, read_wire, write_wire
from headwater.client_connection.events import CallbackFailed, Disconnected, Event, Failed, Reconnected, SlowConsumer
from headwater.errors import ConfigError, HeadwaterError

if TYPE_CHECKING:
    from headwater.client.jetstream import JetStream

T = TypeVar("T")

HELP = "Connection options, anywhere on the line: " + " ".join(
    [*(f"{flag}=…" for flag in WITH_VALUE if flag.startswith("--")), *WITHOUT_VALUE]
)
WIDE = 4096  # columns of a table that is not printed to a terminal
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_UNITS |= {"d": 86400 * 10**9, "w": 7 * 86400 * 10**9, "M": 30 * 86400 * 10**9, "y": 365 * 86400 * 10**9}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d|w|M|y)")


class CliSession:
    """The connection options of one command of `verb`; `json`: print JSON. `timeout`: seconds. `replays`: what the
    command missed while it was away comes again; else a line after the reconnect names what may be missing."""

    def __init__(self, given: dict[str, str | bool], verb: str = "") -> None:
        self.verb = verb
        self.json = bool(given.pop("json", False))
        self.timeout = seconds(str(given.pop("timeout", "5s")))
        self.given = given  # connection options by the names of `ClientOptions`, and JetStream's domain
        self.replays = True
        self._printed: set[str] = set()  # errors

    @cached_property
    def options(self) -> ClientOptions:
        """The server and credentials to connect with. Raises ConfigError."""
        arguments = {"name": "headwater CLI", **self.given}
        arguments.pop("domain", None)
        servers = cast(str | None, arguments.pop("servers", None))
        return find_options(servers, cast(ConnectArguments, arguments), use_chosen=servers is None)

    @cached_property
    def api_prefix(self) -> str:
        """The prefix of JetStream's API, from the option's domain or the context in use. Raises ConfigError."""
        if "domain" in self.given:
            return NatsContext(jetstream_domain=str(self.given["domain"])).api_prefix()
        name = str(self.given.get("context", ""))
        if not name and "servers" not in self.given:
            name = os.environ.get("NATS_CONTEXT", "") or chosen_context(os.environ)
        return (read_context(name, os.environ) if name else NatsContext()).api_prefix()

    def with_context(self, name: str) -> "CliSession":
        """A session with only the context `name`, without this session's options."""
        return CliSession({"context": name})

    def connects(self) -> None:
        """Connect once, and raise the error if that fails."""
        self.run(lambda client: client.flush(self.timeout))

    def run(self, command: Callable[[Client], Awaitable[T]]) -> T:
        """Connect, run `command`, and close. Raises Exit for an error that was printed when it came."""
        options = self.options.replace(event_callback=self._show_event, error_callback=_ignored)

        async def whole() -> T:
            async with await connect_with(options) as client:
                return await command(client)

        try:
            return asyncio.run(whole())
        except HeadwaterError as error:
            if str(error) in self._printed:
                raise Exit(1) from error
            raise

    def _show_event(self, event: Event) -> None:
        """Print what no call of the command raises."""
        match event:
            case Disconnected(reason=reason):
                self._print(HeadwaterError(f"{reason}; connecting again"))
            case Reconnected(server=server):
                missing = "" if self.replays else ": what was published meanwhile did not come, core NATS keeps nothing"
                self._print(HeadwaterError(f"connected to {server} again{missing}"))
            case SlowConsumer(subject=subject, dropped=dropped):
                self._print(HeadwaterError(f"messages on {subject!r} came too fast, {dropped} were dropped"))
            case Failed(error=error) if not isinstance(event, CallbackFailed):  # these are logged with a traceback
                self._print(error if isinstance(error, HeadwaterError) else HeadwaterError(str(error) or repr(error)))
            case _:
                pass

    def _print(self, error: HeadwaterError) -> None:
        from headwater.cli.main import as_json

        self._printed.add(str(error))
        print(as_json(error) if self.json else f"headwater {self.verb}: {error}", file=sys.stderr, flush=True)

    def show(self, value: object, lines: Callable[[], Iterable[str]]) -> None:
        """Print `value` as JSON with --json, else `lines`."""
        if self.json:
            print(json.dumps(msgspec.to_builtins(value, enc_hook=write_wire), indent=2))
        else:
            for line in lines():
                print(line)


def _ignored(error: BaseException) -> None:
    """For errors that are events, too."""


def whole(value: object) -> Any:
    """`value` for JSON with all of its fields: the wire format omits fields that hold their default, but scripts expect
    them."""
    if isinstance(value, msgspec.Struct):
        fields = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        shown = ((name, getattr(value, field)) for field, name in fields)
        return {name: whole(part) for name, part in shown if part is not msgspec.UNSET and part not in (None, "")}
    if isinstance(value, dict):
        return {str(name): whole(part) for name, part in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_asdict"):
        return [whole(part) for part in value]
    return msgspec.to_builtins(value)


def take_session(arguments: Sequence[str], verb: str = "") -> tuple[CliSession, list[str]]:
    """Separate the connection options from the other words, which keep their order; words after `--` are never options."""
    given: dict[str, str | bool] = {}
    rest: list[str] = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word == "--":
            rest += [word, *words]
            break
        flag, _, value = word.partition("=")
        if word in WITHOUT_VALUE:
            given[WITHOUT_VALUE[word]] = True
        elif flag in WITH_VALUE:
            if "=" not in word and not words:
                raise ConfigError(f"{flag} needs a value")
            given[WITH_VALUE[flag]] = value if "=" in word else words.pop(0)
        else:
            rest.append(word)
    return CliSession(given, verb), rest


def run_app(app: Commands, verb: str, arguments: Sequence[str]) -> int:
    """Run a verb's command; the connection options are removed and available as `current()`. Returns the exit status."""
    session, rest = take_session(arguments, verb)
    _current[:] = [session]
    try:
        status = app.run(rest, f"headwater {verb}", HELP)
    except UsageError as wrong:
        print(f"{wrong.path}: {wrong.message} (`{wrong.path} --help` says more)", file=sys.stderr)
        return 2
    except Exit as end:
        return end.code
    except KeyboardInterrupt:
        return 130
    return status if isinstance(status, int) else 0


_current: list[CliSession] = []


def current() -> CliSession:
    """The session of the running command."""
    return _current[0]


def jetstream_of(client: Client) -> "JetStream":
    """JetStream with the timeout and API prefix of the command line."""
    return client.jetstream(timeout=current().timeout, prefix=current().api_prefix)


def confirm(question: str, *, force: bool) -> None:
    """Ask before data is lost; without a terminal, refuse. Raises ConfigError, and Exit when the answer is no."""
    if force:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"{question} Nobody is there to say yes", hint="--force")
    if input(f"{question} [y/N]: ").strip().lower() not in ("y", "yes"):
        raise Exit(1)


def seconds(text: str) -> float:
    """Convert a duration such as `1m30s`, `100ms`, `2d`; a plain number is seconds. Raises ConfigError."""
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ConfigError(f"{text!r} is no duration", value=text, hint="for example 30s, 1m30s, 24h, 7d")
    return sum(int(float(number) * _UNITS[unit]) for number, unit in parts) / SECOND


def size(text: str) -> int:
    """Convert a size such as `1024`, `64K`, `1MB`, `10GiB` to bytes; -1 means no limit. Raises ConfigError."""
    found = re.fullmatch(r"(-1|\d+)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not found:
        raise ConfigError(f"{text!r} is no size", value=text, hint="for example 64KB, 10MB, 1GB")
    return int(found[1]) << (10 * " KMGT".index(found[2].upper() or " "))


def read_document(path: str, kind: type[T]) -> T:
    """A JSON file as a value of `kind`. Raises ConfigError."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=kind, dec_hook=read_wire)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", value=path) from None
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path} is no {kind.__name__}: {error}", value=path) from None


def confirm_changes(before: object, after: object, question: str, *, dry_run: bool, force: bool) -> bool:
    """Show how two configurations differ, and ask; whether the change is to be made."""
    changes = _differences(before, after)
    if not changes:
        current().show({"changed": {}}, lambda: ["No difference in configuration"])
        return False
    if not current().json or dry_run:
        current().show({"changed": changes}, lambda: [f"{key}: {old} -> {new}" for key, (old, new) in changes.items()])
    if not dry_run:
        confirm(question, force=force)
    return not dry_run


def _differences(before: object, after: object) -> dict[str, tuple[Any, Any]]:
    """The fields in which two values of one type differ, in their JSON form: before and after."""
    old, new = (
        {name: msgspec.to_builtins(getattr(each, name), enc_hook=write_wire) for name in each.__struct_fields__}  # type: ignore[attr-defined]
        for each in (before, after)
    )
    return {name: (old[name], new[name]) for name in old if old[name] != new[name]}


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table, limited to the terminal's width; when stdout is not a terminal, it is as wide as its rows."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(title=title, title_justify="left")
    for heading in headings:
        made.add_column(heading, no_wrap=not sys.stdout.isatty())
    for row in rows:
        made.add_row(*(Text(str(cell)) for cell in row))  # as Text, so that brackets in a name are not markup
    (Console() if sys.stdout.isatty() else Console(width=WIDE)).print(made)


def spell_bytes(count: int) -> str:
    """A count of bytes for people, such as `1.5 MiB`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def spell_limit(count: int, spell: Callable[[int], str] = str) -> str:
    return "unlimited" if count <= 0 else spell(count)


def headers_from(lines: Sequence[str]) -> list[tuple[str, str]]:
    """The headers of all `-H Name:value` options. Raises ConfigError."""
    pairs = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise ConfigError(f"{line!r} is no header", value=line, hint="-H Name:value")
        pairs.append((name.strip(), value.strip()))
    return pairs
