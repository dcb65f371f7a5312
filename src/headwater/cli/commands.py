"""The commands of a verb, derived from the signatures of their functions.

    app = Commands("Key-value buckets.")

    @app.command("get")
    def get(bucket: str, raw: Annotated[bool, Option("--raw", "-r", help="the value only")] = False) -> None:
        \"\"\"Print a value.\"\"\"

A parameter with `Option`, or with a default and no `Argument`, is an option; any other is an argument, which is optional
when it has a default. Options may appear anywhere, as `--name value`, `--name=value`, `-n value` or `-nvalue`; `--` ends
them. Types: str, int, float, Path, bool (a switch; `--x/--no-x` names both ways), list[str] (a repeatable option), each
also `| None`. Any other type raises TypeError when the command is registered.

This is not a library because importing `typer` costs 130 ms of CPU, three times as much as publishing a message, and
scripts call these commands in loops. Out of scope on purpose: prompts, environment variables, nested values, abbreviations.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

from headwater.errors import ConfigError

Function = TypeVar("Function", bound=Callable[..., object])

HELP = ("--help", "-h")
_NO_DEFAULT = object()
_HELP_WIDTH = 34  # columns for names in a help text


class Exit(Exception):
    """Ends a command with the exit status `code`; all output has been printed already."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class UsageError(ConfigError):
    """The words do not match the command; `path` is its full name, such as `headwater kv get`."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class Marker(NamedTuple):
    """The metadata of a parameter's annotation. `min`: the least allowed number. `choices`: the words that are taken, each
    with what it stands for; None for any."""

    is_option: bool
    names: tuple[str, ...]
    help: str
    min: int | None
    metavar: str
    choices: dict[str, str] | None = None


def Option(
    *names: str, help: str = "", min: int | None = None, metavar: str = "", choices: dict[str, str] | None = None
) -> Marker:
    """An option with these names; `--x/--no-x` names a switch and its negation."""
    return Marker(True, names, help, min, metavar, choices)


def Argument(*, help: str = "", min: int | None = None, metavar: str = "") -> Marker:
    """An argument; `metavar` is its name in the help text."""
    return Marker(False, (), help, min, metavar)


class Parameter:
    """One parameter of a command. `on`: the names of an option; `off`: the names of a switch's negation."""

    def __init__(self, name: str, annotation: Any, default: object) -> None:
        extras = getattr(annotation, "__metadata__", ())
        marker = next((extra for extra in extras if isinstance(extra, Marker)), None)
        self.name = name
        self.default = default
        self.kind, self.many = _kind(annotation.__origin__ if extras else annotation)
        self.required = default is _NO_DEFAULT
        self.is_option = marker.is_option if marker else not self.required
        self.help = marker.help if marker else ""
        self.min = marker.min if marker else None
        self.choices = marker.choices if marker else None
        self.metavar = (marker.metavar if marker else "") or name.upper()
        names = (marker.names if marker else ()) or (f"--{name.replace('_', '-')}",)
        self.on = [half for each in names for half in each.split("/")[:1]] if self.is_option else []
        self.off = [half for each in names for half in each.split("/")[1:]] if self.is_option else []

    def value_of(self, text: str, path: str) -> object:
        """Convert `text` to the parameter's type. Raises UsageError."""
        shown = self.on[0] if self.is_option else self.metavar
        if self.choices is not None and text not in self.choices:
            known = ", ".join(dict.fromkeys(self.choices.values()))
            raise UsageError(path, f"Invalid value for '{shown}': {text!r} is none of {known}.")
        if self.choices is not None:
            return self.choices[text]
        if self.kind in (str, Path):
            return self.kind(text)
        try:
            number = self.kind(text)
        except ValueError:
            wanted = "integer" if self.kind is int else "number"
            raise UsageError(path, f"Invalid value for '{shown}': {text!r} is not a valid {wanted}.") from None
        if self.min is not None and number < self.min:
            raise UsageError(path, f"Invalid value for '{shown}': {number} is not in the range x>={self.min}.")
        return number


def _kind(annotation: Any) -> tuple[Any, bool]:
    """The type of one value, and whether the parameter is a list. Raises TypeError for an unsupported type."""
    if type(annotation) is UnionType:
        annotation = next(part for part in get_args(annotation) if part is not NoneType)
    many = get_origin(annotation) is list
    if many:
        annotation = get_args(annotation)[0]
    if annotation not in (str, int, float, bool, Path):
        raise TypeError(f"a command takes no {annotation}")
    return annotation, many


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    """What `inspect.signature` says too; but that module is deferred, and it is 3 ms of `headwater pub`."""
    code = function.__code__
    positional, names = (
        code.co_varnames[: code.co_argcount],
        code.co_varnames[: code.co_argcount + code.co_kwonlyargcount],
    )
    defaults = function.__defaults__ or ()
    given = dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))
    given |= function.__kwdefaults__ or {}
    return [Parameter(name, function.__annotations__[name], given.get(name, _NO_DEFAULT)) for name in names]


class Command:
    """One function and its parameters. `hidden`: left out of the help text."""

    def __init__(self, function: Callable[..., object], hidden: bool) -> None:
        self.function = function
        self.hidden = hidden
        self.parameters = _parameters(function)

    @property
    def help(self) -> str:
        """The function's docstring."""
        return inspect.cleandoc(self.function.__doc__ or "")

    def options(self) -> list[str]:
        """The names of all options."""
        return [name for each in self.parameters for name in (*each.on, *each.off)]

    def run(self, words: Sequence[str], path: str, epilog: str) -> object:
        """Call the function with these words. Raises UsageError, and whatever the function raises."""
        values = self._read(list(words), path)
        if values is None:
            print(self._help(path, epilog))
            return 0
        return self.function(**values)

    def _read(self, words: list[str], path: str) -> dict[str, object] | None:
        """The function's arguments by name, or None when help is requested."""
        values: dict[str, object] = {}
        rest: list[str] = []
        while words:
            word = words.pop(0)
            if word == "--":
                rest += words
                break
            if not word.startswith("-") or word == "-" or _is_number(word):
                rest.append(word)
            elif word in HELP and word not in self.options():
                return None
            else:
                self._option(word, words, values, path)
        for one in self.parameters:
            if not one.is_option and rest:
                values[one.name] = one.value_of(rest.pop(0), path)
            if one.name not in values:
                if one.required:
                    what = f"option '{one.on[0]}'" if one.is_option else f"argument '{one.metavar}'"
                    raise UsageError(path, f"Missing {what}.")
                values[one.name] = list(one.default) if isinstance(one.default, list) else one.default
        if rest:
            raise UsageError(path, f"Got unexpected extra argument{'s' if rest[1:] else ''} ({' '.join(rest)})")
        return values

    def _option(self, word: str, words: list[str], values: dict[str, object], path: str) -> None:
        name, equals, text = word.partition("=")
        if not word.startswith("--"):
            name, text = word[:2], word[2:].removeprefix("=")
            equals = text
        one = next((each for each in self.parameters if name in (*each.on, *each.off)), None)
        if one is None:
            raise UsageError(path, f"No such option: {name}{_meant(name, self.options())}")
        if one.kind is bool:
            if equals and word.startswith("--"):
                raise UsageError(path, f"Option '{name}' does not take a value.")
            values[one.name] = name in one.on
            if equals:  # -rq means -r -q
                words.insert(0, f"-{text}")
            return
        if not equals:
            if not words:
                raise UsageError(path, f"Option '{name}' requires an argument.")
            text = words.pop(0)
        value = one.value_of(text, path)
        if one.many:
            found = values.setdefault(one.name, [])
            assert isinstance(found, list)
            found.append(value)
        else:
            values[one.name] = value

    def _help(self, path: str, epilog: str) -> str:
        arguments = [one for one in self.parameters if not one.is_option]
        shown = " ".join(one.metavar if one.required else f"[{one.metavar}]" for one in arguments)
        lines = [f"Usage: {path} [OPTIONS] {shown}".rstrip(), "", self.help]
        rows = [(one.metavar, _remark(one)) for one in arguments]
        lines += _table("Arguments:", [row for row in rows if row[1]])
        options = [(_spelled(one), _remark(one)) for one in self.parameters if one.is_option]
        lines += _table("Options:", [*options, ("--help, -h", "show this and end")])
        return "\n".join([*lines, *(["", epilog] if epilog else [])])


class Commands:
    """The commands of a verb by name; a command registered without a name is the verb itself."""

    def __init__(self, help: str) -> None:
        self.help = help
        self.commands: dict[str, Command | Commands] = {}

    def command(self, name: str = "", *, hidden: bool = False) -> Callable[[Function], Function]:
        """Register a function. Hidden names work but are not listed."""

        def register(function: Function) -> Function:
            self.commands[name] = Command(function, hidden)
            return function

        return register

    def add(self, name: str, inner: "Commands") -> None:
        """Register the group of commands `inner` under a name."""
        self.commands[name] = inner

    def run(self, words: Sequence[str], path: str, epilog: str) -> object:
        """Run the command named by the first word; returns what its function returns. Raises UsageError and Exit."""
        if "" in self.commands:
            return self.commands[""].run(words, path, epilog)
        if not words or words[0] in HELP:
            print(self._help(path, epilog), file=sys.stdout if words else sys.stderr)
            return 0 if words else 2
        found = self.commands.get(words[0])
        if found is None:
            what = "option" if words[0].startswith("-") else "command"
            raise UsageError(path, f"No such {what} {words[0]!r}.{_meant(words[0], self.listed())}")
        return found.run(words[1:], f"{path} {words[0]}", epilog)

    def listed(self) -> list[str]:
        """The names listed in the help text."""
        return sorted(
            name for name, one in self.commands.items() if name and not (isinstance(one, Command) and one.hidden)
        )

    def _help(self, path: str, epilog: str) -> str:
        rows = [(name, self.commands[name].help.partition("\n\n")[0].replace("\n", " ")) for name in self.listed()]
        lines = [f"Usage: {path} COMMAND [ARGUMENTS]", "", self.help, *_table("Commands:", rows)]
        return "\n".join([*lines, "", epilog])


def _is_number(word: str) -> bool:
    return word[1:].replace(".", "", 1).isdigit()


def _meant(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, known, 1)
    return f" Did you mean {near[0]}?" if near else ""


def _spelled(one: Parameter) -> str:
    names = ", ".join([*one.on, *one.off])
    return (
        names
        if one.kind is bool
        else f"{names} {'TEXT' if one.kind is str else 'PATH' if one.kind is Path else 'NUMBER'}"
    )


def _remark(one: Parameter) -> str:
    shown = "" if one.required or one.default in (None, "", False, []) else f"[default: {one.default}]"
    least = f"[at least {one.min}]" if one.min is not None else ""
    needed = "[required]" if one.required and one.is_option else ""
    return " ".join(part for part in (one.help, least, shown, needed) if part)


def _table(title: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    lines = [f"  {left:<{_HELP_WIDTH}}{right}".rstrip() for left, right in rows]
    return ["", title, *lines] if lines else []
