"""Documents are executable: paths exist, examples run, generated tables are current."""

import ast
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.checkout import ROOT, SOURCE, name_of, tracked, tree_of

DOCUMENTS = tracked(".md")
CHECKED_SINCE = datetime(2026, 11, 23, 8, 50, tzinfo=UTC)
KINDS = r"(?:py|pxd|pyi|md|txt|in|toml|json|jsonl|gz|sh)"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[object]:
    """The code blocks of all documents in one language, as parameters named by document and number."""
    return [
        pytest.param(code, id=f"{name_of(path)}-{number}")
        for path in DOCUMENTS
        for number, (kind, code) in enumerate(BLOCK.findall(path.read_text(encoding="utf-8")))
        if kind == language
    ]


def python_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def exists(reference: str, document: Path) -> bool:
    """Whether a path that a document names is there: from the root, from the document, or from the sources."""
    homes = (ROOT, document.parent, SOURCE, SOURCE / "headwater")
    return any((home / reference).exists() for home in homes)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_path_that_a_document_names_exists(document: Path) -> None:
    text = BLOCK.sub("", document.read_text(encoding="utf-8"))
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    quoted = re.findall(rf"`((?:[\w.*-]+/)+[\w.*-]+\.{KINDS})`", text)
    folders = re.findall(r"`((?:[\w.-]+/)+)`", text)
    named = [path for path in [*links, *quoted, *folders] if path and "*" not in path]
    missing = [path for path in named if not exists(path, document) and not path.startswith((".venv", ".hw", "build"))]
    assert missing == []


def test_every_document_that_the_sources_point_to_exists() -> None:
    missing = [
        f"{name_of(path)}: {reference}"
        for path in [*tracked(".py", ".pxd"), ROOT / "hw"]
        for reference in re.findall(rf"\b((?:docs|requirements)/[\w/-]+\.{KINDS})", path.read_text(encoding="utf-8"))
        if not (ROOT / reference).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("code", blocks("python"))
def test_python_examples_run(code: str) -> None:
    command = [sys.executable, "-P", "-W", "error", "-c", code]
    answer = subprocess.run(command, env=python_path(), capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("code", blocks("bash"))
def test_shell_examples_use_verbs_that_exist(code: str) -> None:
    answer = subprocess.run([str(ROOT / "hw"), "help"], capture_output=True, text=True, timeout=60, check=True)
    verbs = set(re.findall(r"^  (\w+) ", answer.stdout, re.MULTILINE))
    assert verbs
    assert set(re.findall(r"\./hw (\w+)", code)) <= verbs


def test_generated_parts_of_documents_are_current() -> None:
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    answer = subprocess.run(command, env=python_path(), capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_the_readme_names_every_package() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in tracked("__init__.py", under=SOURCE / "headwater")} - {"headwater"}
    top = {name for name in packages if (SOURCE / "headwater" / name).is_dir()}
    assert {name for name in top if f"`{name}/`" not in readme and f"{name}/" not in readme} == set()


def test_what_the_readme_says_to_be_in_a_file_is_defined_there() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    answers = re.findall(r"^\| where [^|]*\| `([\w/]+\.py)`: `(?:(\w+)\.)?(\w+)`", readme, re.MULTILINE)
    assert len(answers) == 5
    missing = []
    for path, owner, name in answers:
        tree = tree_of(SOURCE / "headwater" / path)
        scopes = (
            [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner] if owner else [tree]
        )
        functions = [node.name for scope in scopes for node in scope.body if isinstance(node, ast.FunctionDef)]
        if name not in functions:
            missing.append(f"{path}: {owner}.{name}")
    assert missing == []


def test_every_name_in_a_row_of_the_special_paths_is_in_a_file_of_that_row() -> None:
    missing = []
    for row in (ROOT / "docs" / "hot-paths.md").read_text(encoding="utf-8").splitlines():
        cells = row.split(" | ")
        files = re.findall(r"`([\w/]+\.py)`", cells[1]) if len(cells) == 5 else []
        code = "".join((SOURCE / "headwater" / file).read_text(encoding="utf-8") for file in files)
        names = re.findall(r"`([A-Za-z_.]+)`", cells[1]) if files else []
        missing += [f"{name}: {files}" for name in names if not re.search(rf"\b{name.split('.')[-1]}\b", code)]
    assert missing == []


def test_the_readme_fits_on_a_page() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_decisions_are_numbered_without_holes() -> None:
    numbers = sorted(path.name[:4] for path in tracked(".md", under=ROOT / "docs" / "adr") if path.name != "README.md")
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]


def test_subjects_of_commits_are_short_and_name_a_layer() -> None:
    """Of those written since the rule was checked; a checkout without history (a source archive) has none."""
    command = ["git", "log", "--no-merges", "--format=%aI %s"]  # the author's time: a rebase changes all else
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    commits = [line.partition(" ") for line in answer.stdout.splitlines()]
    subjects = [subject for when, _, subject in commits if datetime.fromisoformat(when) >= CHECKED_SINCE]
    assert [
        subject for subject in subjects if len(subject) > 72 or not re.match(r"[\w./*-]+(, [\w./*-]+)*: ", subject)
    ] == []
