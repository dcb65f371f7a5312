"""What the import linter cannot see: the standard library's clocks and files in pure layers, and what an import loads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook
from support.checkout import SOURCE, imports_of, name_of, tracked

PURE = [
    "cloudevents",
    "columns",
    "durable_files",
    "iggy_wire",
    "jetstream_documents",
    "jetstream_state",
    "model",
    "streams",
    "wire",
]
PACKAGE = SOURCE / "headwater"
OPERATING_SYSTEM = {"fcntl", "glob", "io", "mmap", "os", "shutil", "tempfile"}
CLOCKS_AND_DICE = {"random", "secrets", "time", "uuid"}
HEAVY = {"asyncio", "cloudevents", "msgspec", "pyarrow", "pyspark", "rich", "socket", "ssl", "typer", "uvloop"}


def loaded_by(statement: str) -> set[str]:
    """Names of the modules that a fresh interpreter loads for `statement`, beyond those it starts with."""
    program = (
        "import sys, json; before = set(sys.modules); before.add('json')\n"
        f"{statement}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-P", "-c", program]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    return set(json.loads(answer.stdout.splitlines()[-1]))


def test_importing_headwater_loads_next_to_nothing() -> None:
    loaded = loaded_by("import headwater")
    assert not loaded & HEAVY
    assert {name for name in loaded if name.startswith("headwater")} == {"headwater", "headwater.version"}
    assert len(loaded) <= 15, sorted(loaded)


@pytest.mark.parametrize("layer", PURE)
def test_importing_a_pure_layer_loads_no_io(layer: str) -> None:
    modules = [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for path in tracked(".py", under=PACKAGE / layer)
    ]
    loaded = loaded_by("import " + ", ".join(modules))
    assert not loaded & (HEAVY - {"msgspec"})


def test_only_files_py_touches_the_operating_system() -> None:
    touching = [
        name_of(path)
        for layer in PURE
        for path in tracked(".py", under=PACKAGE / layer)
        if set(imports_of(path)) & OPERATING_SYSTEM
    ]
    assert touching == ["src/headwater/durable_files/files.py"]


def test_pure_layers_have_no_clock_and_no_dice_of_their_own() -> None:
    using = {
        name_of(path): sorted(found)
        for layer in PURE
        for path in tracked(".py", under=PACKAGE / layer)
        if (found := set(imports_of(path)) & CLOCKS_AND_DICE)
    }
    assert using == {}


def test_the_tests_run_the_product_that_was_asked_for() -> None:
    """A build that silently fell back, or a stale copy on the path, would make the rest of the suite prove nothing."""
    import headwater
    from headwater.wire import memory

    assert memory.__file__ is not None
    home = Path(headwater.__file__).parent
    assert Path(memory.__file__).is_relative_to(home)
    interpreted_wanted = os.environ.get("HEADWATER_INTERPRETED", "0") not in ("", "0")
    assert bool(headwater.__compiled__) == memory.__file__.endswith(".so")
    if interpreted_wanted or home == PACKAGE:
        assert not headwater.__compiled__
    else:
        assert headwater.__compiled__


def test_no_module_of_the_product_is_rewritten_by_pytest() -> None:
    """But those that the plugin itself imports, before any conftest; `tests/conftest.py` says why."""
    rewritten = {
        name
        for name, module in sys.modules.items()
        if name.partition(".")[0] == "headwater" and isinstance(module.__loader__, AssertionRewritingHook)
    }
    assert rewritten <= loaded_by("import headwater.testing.fixtures") | {"headwater"}


def test_hot_modules_are_all_compiled_or_all_interpreted() -> None:
    import importlib

    import headwater

    kinds = {}
    for declaration in tracked(".pxd", under=SOURCE):
        name = ".".join(declaration.relative_to(SOURCE).with_suffix("").parts)
        assert declaration.with_suffix(".py").exists(), f"{name_of(declaration)} has no module beside it"
        kinds[name] = str(importlib.import_module(name).__file__).endswith(".so")
    assert set(kinds.values()) == {bool(headwater.__compiled__)}, kinds
