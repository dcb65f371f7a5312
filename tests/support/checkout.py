"""What the tests of the checkout itself need: its root, its files, and the sources as syntax trees."""

import ast
import gc
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"


@cache
def tracked_files() -> tuple[Path, ...]:
    """Every file that git tracks and that is there; without git (an unpacked archive) every file under the root that
    is not hidden and not built."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode == 0:
        paths = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
        return tuple(path for path in paths if path.is_file())
    made = {"build", "dist", "node_modules", "__pycache__"}
    everything = (path for path in ROOT.rglob("*") if path.is_file())
    return tuple(
        path
        for path in everything
        if not any(part in made or (part.startswith(".") and part != ".ci") for part in path.relative_to(ROOT).parts)
    )


def tracked(*suffixes: str, under: Path = ROOT) -> list[Path]:
    """Tracked files below `under` whose names end in one of `suffixes`."""
    return [path for path in tracked_files() if path.name.endswith(suffixes) and path.is_relative_to(under)]


def name_of(path: Path) -> str:
    """A path as it is written in messages and documents: relative to the root."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a Python file; no caller may change it.

    Without a collection meanwhile: a finalizer's traceback is made with `ast`, too, and CPython 3.11 then fails the outer
    call (SystemError, "AST constructor recursion depth mismatch").
    """
    source, collects = path.read_text(encoding="utf-8"), gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source, str(path))
    finally:
        if collects:
            gc.enable()


def imports_of(path: Path) -> Iterator[str]:
    """Top-level names of the modules that a file imports, anywhere in it."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]
