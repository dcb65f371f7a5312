"""Since Python 3.14 annotations are evaluated late, in their class: no attribute there may hide a type that they name."""

import ast
import builtins
import importlib
import inspect
from pathlib import Path

import pytest
from support.checkout import ROOT

SOURCE = ROOT / "src"


def postponed(tree: ast.Module) -> bool:
    """Whether the module's annotations are texts, which are not evaluated in a class."""
    return any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)


def named_types(node: ast.ClassDef) -> set[str]:
    """The built-in types that the annotations of the class name."""
    found = set[str]()
    for inner in ast.walk(node):
        notes = [inner.returns] if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) else []
        notes += [inner.annotation] if isinstance(inner, ast.arg | ast.AnnAssign) else []
        for note in notes:
            found |= {name.id for name in ast.walk(note) if isinstance(name, ast.Name)} if note is not None else set()
    return {name for name in found if isinstance(getattr(builtins, name, None), type)}


@pytest.mark.parametrize("folder", ["client", "client_connection", "iggy_client", "model", "cloudevents", "testing"])
def test_no_attribute_hides_a_type_that_an_annotation_names(folder: str) -> None:
    seen = 0
    for path in sorted((SOURCE / "headwater" / folder).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        module = importlib.import_module(".".join(Path(path).relative_to(SOURCE).with_suffix("").parts))
        for node in tree.body:
            made = getattr(module, node.name, None) if isinstance(node, ast.ClassDef) else None
            if isinstance(node, ast.ClassDef) and inspect.isclass(made) and not postponed(tree):
                seen += 1
                assert not named_types(node) & set(vars(made)), f"{path.name}: {node.name}"
    assert seen
