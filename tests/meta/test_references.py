"""What a comment or a docstring names is there: files, modules, tests, and what a class or a module should have.

And both prose and names use the field's words: data is sent, received, published or requested; it is not "told",
"said", "heard" or "asked". A name of a test is a sentence, and free.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from support.checkout import ROOT, SOURCE, name_of, tracked, tree_of

FILE = re.compile(r"(?<![\w/.*<>-])((?:[\w.-]+/)*[\w-]+\.(?:py|pxd|pyi|md|txt|in|toml|jsonl?|gz|sh|conf))\b(?![\w(])")
MODULE = re.compile(r"(?<![\w./])headwater((?:\.[a-z]\w*)+)")
TEST = re.compile(r"\btest_\w+\b")
MEMBER = re.compile(r"`(?:\w+\.)*([A-Za-z_]\w*)\.(\w+)(?:\([^`]*\))?`")
ANY = re.compile("|".join(f"(?:{pattern.pattern})" for pattern in (FILE, MODULE, TEST, MEMBER)))
NOT_HERE = {
    "src/headwater/archive/entries.py": {"state.json"},  # the next three name parts of a backup
    "src/headwater/jetstream_documents/backups.py": {"state.json"},
    "src/headwater/operations/backups.py": {"DIR/backup.json", "backup.json"},
    "setup.py": {"x.py", "x.pxd"},  # stands for any hot module
    "src/headwater/cloudevents/github.py": {"adapters/github.md"},  # of the CloudEvents specification
    "src/headwater/cloudevents/sdk_python.py": {"http.to_structured"},  # of that SDK
    "src/headwater/spark/declarative.py": {"pipeline.toml", "transformations/tables.py", "orders/pipeline.toml"},
    "src/headwater/iggy/message_commands.py": {"address.count"},  # a field of the argument
    "tests/cli/test_demo_kill.py": {"../shared/data/commits.jsonl"},
    "tests/meta/test_hw.py": {"product/hot.py"},  # the next two are made by the tests
    "tests/server/config/conftest.py": {"server.conf"},
    "tests/support/headwater_server.py": {"headwater.log"},
}
"""Names of what is not part of the checkout, by the file that names it."""

RIDDLES = re.compile(
    r"\b(told|said|hear|heard|hears|whoever|whom|somebody|nobody|asked for|unasked|who asks|spoken of|speaks of|swims?)\b"
)
RIDDLE = (
    "told untold tell tells telling said saying heard hear hears hearing swim swims asked asker asking news "
    "who whom whose whoever nobody somebody"
).split()
NAME_PART = re.compile(
    f"(?<![A-Za-z])(?:{'|'.join(RIDDLE)})(?![a-z])"
    f"|(?:{'|'.join(RIDDLE).title()})(?![a-z])"
    f"|(?<![A-Za-z])(?:{'|'.join(RIDDLE).upper()})(?![A-Za-z])"
)
QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"")


class Named(NamedTuple):
    """A piece of prose, and where it begins."""

    path: Path
    line: int
    text: str

    @property
    def place(self) -> str:
        return f"{name_of(self.path)}:{self.line}"


@cache
def prose() -> tuple[Named, ...]:
    """Every comment and docstring of the checkout."""
    return tuple(named for path in tracked(".py", ".pxd") for named in _prose_of(path))


def _prose_of(path: Path) -> Iterator[Named]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".pxd":
        for number, line in enumerate(text.splitlines(), 1):
            if "#" in line:
                yield Named(path, number, line.partition("#")[2])
        return
    comments = (line.partition("#")[2] for line in text.splitlines())
    if any(ANY.search(comment) or RIDDLES.search(comment) for comment in comments):  # spares most files a tokenizer
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield Named(path, token.start[0], token.string)
    for node in _nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:  # also those that stand behind a constant
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                    if isinstance(statement.value.value, str):
                        yield Named(path, statement.lineno, statement.value.value)


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    """What may have a docstring, and the classes."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return tuple(node for node in _blocks(tree_of(path)) if isinstance(node, kinds))


def _blocks(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all that have statements below it; expressions, nine tenths of a tree, are left out."""
    yield node
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        for child in getattr(node, part, ()):
            if hasattr(child, "body") or hasattr(child, "cases"):
                yield from _blocks(child)


def test_every_file_that_a_comment_names_exists() -> None:
    missing = []
    for named in prose():
        homes = (named.path.parent, ROOT, SOURCE, SOURCE / "headwater", ROOT / "tests")
        missing += [
            f"{named.place} {file}"
            for file in FILE.findall(named.text)
            if not _is_elsewhere(named.path, file) and not any((home / file).exists() for home in homes)
        ]
    assert missing == []


def test_every_exception_is_needed() -> None:
    for name, exceptions in NOT_HERE.items():
        text = "\n".join(named.text for named in prose() if name_of(named.path) == name)
        assert {exception for exception in exceptions if exception not in text} == set(), name


def _is_elsewhere(path: Path, name: str) -> bool:
    return name in NOT_HERE.get(name_of(path), ())


def test_every_module_that_a_comment_names_exists() -> None:
    missing = []
    for named in prose():
        for dotted in MODULE.findall(named.text):
            parts = dotted[1:].split(".")
            at = next(size for size in range(len(parts), -1, -1) if _source(parts[:size]) is not None)
            source = _source(parts[:at])
            assert source is not None
            held = at == len(parts) or re.search(rf"\b{parts[at]}\b", source.read_text(encoding="utf-8"))
            if not held and not _is_elsewhere(named.path, f"headwater{dotted}"):
                missing.append(f"{named.place} headwater{dotted}")
    assert missing == []


def _source(parts: list[str]) -> Path | None:
    base = SOURCE.joinpath("headwater", *parts)
    found = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    return found if found.exists() else None


def test_every_test_that_a_comment_names_exists() -> None:
    files = [path for path in tracked(".py") if "tests" in path.parts]
    there = {path.stem for path in files} | {
        name for path in files for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    }
    assert [
        f"{named.place} {test}" for named in prose() for test in TEST.findall(named.text) if test not in there
    ] == []


def test_what_a_comment_says_that_a_class_or_module_has_it_has() -> None:
    classes, modules = _definitions()
    missing = [
        f"{named.place} {owner}.{member}"
        for named in prose()
        for owner, member in MEMBER.findall(named.text)
        if not _is_elsewhere(named.path, f"{owner}.{member}")
        if (owner in classes and not _has(classes, owner, member))
        or (owner in modules and member not in modules and not re.search(rf"\b{member}\b", modules[owner]))
    ]
    assert missing == []


def _definitions() -> tuple[dict[str, list[ast.ClassDef]], dict[str, str]]:
    """Classes by name, and the text of modules by theirs; what several files call the same is taken together."""
    classes: dict[str, list[ast.ClassDef]] = {}
    modules: dict[str, str] = {"py": ""}
    for path in tracked(".py"):
        modules[path.stem] = modules.get(path.stem, "") + path.read_text(encoding="utf-8")
        for node in _nodes(path):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(node)
    return classes, modules


def _has(classes: dict[str, list[ast.ClassDef]], name: str, member: str) -> bool:
    """Whether a class of that name, or a base of it, mentions `member`. A base from elsewhere may have anything."""
    for node in classes[name]:
        bases = [ast.unparse(base).split("[")[0].rpartition(".")[2] for base in node.bases]
        if re.search(rf"\b{member}\b", ast.unparse(node)):
            return True
        if any(base not in classes or (base != name and _has(classes, base, member)) for base in bases):
            return True
    return False


def test_prose_has_no_riddles() -> None:
    lines = ((named, QUOTED.sub("", line)) for named in prose() for line in named.text.splitlines())
    assert [f"{named.place} {line.strip()}" for named, line in lines if RIDDLES.search(line)] == []


def test_names_are_no_riddles() -> None:
    found = [
        f"{name_of(path)}:{number} {name}"
        for path in tracked(".py", ".pxd", ".pyi")
        for number, name in _names_in(path)
        if NAME_PART.search(name) and not name.startswith("test_")
    ]
    assert found == []


def _names_in(path: Path) -> Iterator[tuple[int, str]]:
    """The names on lines that may have a riddle. Only files with such code are read token by token."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    likely = {number for number, line in enumerate(lines, 1) if NAME_PART.search(line)}
    if likely and path.suffix != ".pxd":
        for node in _nodes(path) if path.suffix == ".py" else ():
            for statement in getattr(node, "body", ()):
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                    likely.difference_update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    likely = {number for number in likely if NAME_PART.search(QUOTED.sub("", lines[number - 1].partition("#")[0]))}
    if likely and path.suffix == ".pxd":
        yield from (
            (number, name) for number in likely for name in re.findall(r"\w+", lines[number - 1].partition("#")[0])
        )
    elif likely:
        for token in tokenize.generate_tokens(iter(lines).__next__):
            if token.type == tokenize.NAME and token.start[0] in likely:
                yield token.start[0], token.string


def test_no_file_holds_the_marks_of_a_merge() -> None:
    marks = tuple(mark * 7 + " " for mark in "<>|")
    texts = tracked(".py", ".pxd", ".md", ".toml", ".txt", ".conf", "hw", "run")
    found = [
        f"{name_of(path)}:{number}"
        for path in texts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if line.startswith(marks)
    ]
    assert found == []
