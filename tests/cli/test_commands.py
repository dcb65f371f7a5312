"""The words of a command line become the arguments of a function, or one sentence says what is wrong with them."""

from pathlib import Path
from typing import Annotated

import pytest

from headwater.cli.commands import Argument, Commands, Exit, Option, UsageError

app = Commands("Things.")
inner = Commands("Checks.")
app.add("check", inner)
seen: list[object] = []


@app.command("make")
@app.command("create", hidden=True)
def make(
    name: str,
    target: Annotated[Path, Argument(help="a file", metavar="FILE")] = Path("-"),
    count: Annotated[int, Option("--count", min=1)] = 1,
    labels: Annotated[list[str], Option("-l", "--label")] = [],  # noqa: B006  (read only)
    ratio: Annotated[float | None, Option("--ratio")] = None,
    quiet: Annotated[bool, Option("--quiet", "-q")] = False,
    raw: Annotated[bool, Option("--raw", "-r")] = False,
    synced: Annotated[bool, Option("--synced/--no-synced")] = True,
) -> None:
    """Make a thing.

    More of it.
    """
    seen[:] = [name, str(target), count, labels, ratio, quiet, raw, synced]


@inner.command("all")
def check_all(needed: Annotated[str, Option("--needed")]) -> None:
    """Check."""
    raise Exit(3 if needed == "three" else 0)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("make a", ["a", "-", 1, [], None, False, False, True]),
        ("make --count 2 a f", ["a", "f", 2, [], None, False, False, True]),
        ("make a --count=2 -l x -ly --label=z f", ["a", "f", 2, ["x", "y", "z"], None, False, False, True]),
        ("make a -qr --no-synced --ratio .5", ["a", "-", 1, [], 0.5, True, True, False]),
        ("create -- --count", ["--count", "-", 1, [], None, False, False, True]),
        ("make -1 -", ["-1", "-", 1, [], None, False, False, True]),
        ("make a --label -x", ["a", "-", 1, ["-x"], None, False, False, True]),
    ],
)
def test_options_stand_anywhere_and_arguments_in_their_order(words: str, found: list[object]) -> None:
    app.run(words.split(), "hw", "")
    assert seen == found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("make", "hw make: Missing argument 'NAME'."),
        ("make a --conut 1", "hw make: No such option: --conut Did you mean --count?"),
        ("make a --count x", "hw make: Invalid value for '--count': 'x' is not a valid integer."),
        ("make a --count 0", "hw make: Invalid value for '--count': 0 is not in the range x>=1."),
        ("make a --count", "hw make: Option '--count' requires an argument."),
        ("make a --quiet=yes", "hw make: Option '--quiet' does not take a value."),
        ("make a b c d", "hw make: Got unexpected extra arguments (c d)"),
        ("mkae a", "hw: No such command 'mkae'. Did you mean make?"),
        ("--all", "hw: No such option '--all'."),
        ("check all", "hw check all: Missing option '--needed'."),
    ],
)
def test_what_does_not_fit_is_told_in_one_sentence(words: str, message: str) -> None:
    with pytest.raises(UsageError) as wrong:
        app.run(words.split(), "hw", "")
    assert f"{wrong.value.path}: {wrong.value.message}" == message


def test_a_command_ends_with_the_status_that_it_chooses() -> None:
    with pytest.raises(Exit) as end:
        app.run(["check", "all", "--needed", "three"], "hw", "")
    assert end.value.code == 3


def test_the_help_lists_commands_arguments_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["--help"], "hw", "And the server.") == 0
    listing = capsys.readouterr().out
    assert "make" in listing and "Make a thing." in listing and "create" not in listing
    assert listing.endswith("And the server.\n")
    assert app.run(["make", "-h"], "hw", "") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Usage: hw make [OPTIONS] NAME [FILE]\n\nMake a thing.\n\nMore of it.\n")
    assert "--synced, --no-synced" in shown and "[at least 1] [default: 1]" in shown
    assert app.run([], "hw", "") == 2
    assert "Things." in capsys.readouterr().err


def test_a_type_that_is_not_understood_is_refused_when_the_command_is_registered() -> None:
    def odd(value: complex) -> None: ...

    with pytest.raises(TypeError, match="complex"):
        Commands("").command("odd")(odd)
