"""`./hw` never runs a stale compiled module, hands over to a newer Python, and knows its verbs."""

import ast
import importlib.util
import json
import os
import subprocess
import sys
import time
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest
from support.checkout import ROOT


@pytest.fixture
def hw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, looking at a small checkout of its own: one hot module, `product/hot.py`."""
    loader = SourceFileLoader("hw_script", str(ROOT / "hw"))
    spec = importlib.util.spec_from_loader("hw_script", loader)
    assert spec is not None
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(script)
    compiled_copy = tmp_path / "build" / "compiled"
    places = {
        "ROOT": tmp_path,
        "STAMP": tmp_path / "stamp.json",
        "STATE": tmp_path / ".hw",
        "COMPILED": compiled_copy,
        "MIRROR": compiled_copy / "lib",
        "MANIFEST": compiled_copy / "manifest.json",
    }
    for name, place in places.items():
        monkeypatch.setattr(script, name, place)
    monkeypatch.delenv("HEADWATER_INTERPRETED", raising=False)
    (tmp_path / ".hw").mkdir()
    package = tmp_path / "src" / "product"
    package.mkdir(parents=True)
    for name in ("__init__.py", "hot.py", "hot.pxd", "plain.py"):
        (package / name).write_text(f"# {name}\n")
    return script


def fake_build(hw: ModuleType, monkeypatch: pytest.MonkeyPatch, works: bool = True) -> list[list[str]]:
    """Puts a compiler in place that makes empty libraries; returns the list of what each build had to make."""
    builds: list[list[str]] = []

    def build(title: str, command: list[str], log: Path, env: dict[str, str], limit: float) -> int:
        missing = [name for name in hw.hot_modules() if not hw.libraries(name)]
        builds.append(missing)
        for name in missing if works else []:
            (hw.MIRROR / f"{name}.cpython-311-x86_64-linux-gnu.so").touch()
        return 0

    monkeypatch.setattr(hw, "watch", build)
    return builds


def test_the_compiled_copy_is_built_once_and_then_used(hw: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    builds = fake_build(hw, monkeypatch)
    assert [hw.compile_product() for _ in range(3)] == [hw.MIRROR] * 3
    assert builds == [["product/hot"]]
    assert (hw.MIRROR / "product" / "plain.py").read_text() == "# plain.py\n"


@pytest.mark.parametrize("name", ["hot.py", "hot.pxd"])
def test_a_changed_hot_source_is_rebuilt_before_anything_runs(
    hw: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    builds = fake_build(hw, monkeypatch)
    hw.compile_product()
    changed = hw.ROOT / "src" / "product" / name
    before = changed.stat()
    changed.write_text("# other\n")
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))  # an older or equal time must not hide the change
    hw.compile_product()
    assert builds == [["product/hot"], ["product/hot"]]


def test_a_changed_declaration_rebuilds_what_names_it_and_nothing_else(
    hw: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = hw.ROOT / "src" / "product"
    (package / "near.py").write_text("if cython.compiled:\n    from cython.cimports.product.hot import Hot\n")
    (package / "near.pxd").write_text("cimport cython\n")
    (package / "far.py").write_text("from product.near import Near\n")
    (package / "far.pxd").write_text("from product.near cimport Near\n")
    (package / "near.pxd").write_text("from product.hot cimport Hot\n")
    (package / "apart.py").write_text("import os\n")
    (package / "apart.pxd").write_text("cimport cython\n")
    builds = fake_build(hw, monkeypatch)
    hw.compile_product()
    (package / "hot.pxd").write_text("# changed\n")
    hw.compile_product()
    (package / "apart.pxd").write_text("# changed\n")
    hw.compile_product()
    names = [sorted(Path(name).name for name in build) for build in builds]
    assert names == [["apart", "far", "hot", "near"], ["far", "hot", "near"], ["apart"]]


def test_an_edit_of_an_ordinary_module_needs_no_build(hw: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    builds = fake_build(hw, monkeypatch)
    hw.compile_product()
    (hw.ROOT / "src" / "product" / "plain.py").write_text("# edited\n")
    (hw.ROOT / "src" / "product" / "new.py").write_text("# new\n")
    hw.compile_product()
    assert len(builds) == 1
    assert (hw.MIRROR / "product" / "plain.py").read_text() == "# edited\n"
    assert (hw.MIRROR / "product" / "new.py").exists()


def test_modules_are_translated_ahead_and_again_after_an_edit(hw: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_build(hw, monkeypatch)
    hw.compile_product()
    hw.STAMP.write_text(json.dumps({"python": f"{sys.version_info[0]}.{sys.version_info[1]} any"}))
    calls: list[list[str]] = []

    def translate(title: str, command: list[str], log: Path, env: dict[str, str], limit: float) -> int:
        calls.append(command)
        return subprocess.call([sys.executable, *command[1:]], env=env, timeout=60)

    monkeypatch.setattr(hw, "watch", translate)
    hw.write_bytecode()
    hw.write_bytecode()
    assert len(calls) == 1
    plain = hw.ROOT / "src" / "product" / "plain.py"
    plain.write_text("# edited\n")
    later = time.time() + 10
    os.utime(plain, (later, later))
    hw.write_bytecode()
    assert len(calls) == 2


def test_a_module_that_is_gone_leaves_nothing_behind(hw: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_build(hw, monkeypatch)
    package = hw.ROOT / "src" / "product"
    for name in ("cold.py", "cold.pxd"):
        (package / name).write_text("")
    hw.compile_product()
    assert hw.libraries("product/cold")
    for name in ("cold.py", "cold.pxd"):
        (package / name).unlink()
    hw.compile_product()
    assert sorted(path.name.split(".")[0] for path in (hw.MIRROR / "product").iterdir()) == [
        "__init__", "hot", "hot", "hot", "plain",
    ]  # fmt: skip


def test_a_build_that_was_killed_is_repeated(hw: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    builds = fake_build(hw, monkeypatch)
    hw.compile_product()
    hw.MANIFEST.unlink()
    hw.compile_product()
    assert builds == [["product/hot"], ["product/hot"]]


def test_a_build_that_was_killed_goes_on_behind_the_modules_that_were_whole(
    hw: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = hw.ROOT / "src" / "product"
    for name in ("changed", "early", "late", "never"):
        for suffix in (".py", ".pxd"):
            (package / name).with_suffix(suffix).touch()

    def build(title: str, command: list[str], log: Path, env: dict[str, str], limit: float) -> int:
        for name, age in (("changed", 60), ("early", 60), ("late", 0)):
            library = hw.MIRROR / "product" / f"{name}.cpython-311-x86_64-linux-gnu.so"
            library.touch()
            os.utime(library, (time.time() - age, time.time() - age))
        raise KeyboardInterrupt

    monkeypatch.setattr(hw, "watch", build)
    with pytest.raises(KeyboardInterrupt):
        hw.compile_product()
    (package / "changed.py").write_text("# edited\n")
    builds = fake_build(hw, monkeypatch)
    assert [hw.compile_product() for _ in range(2)] == [hw.MIRROR] * 2
    assert builds == [["product/changed", "product/hot", "product/late", "product/never"]]


def test_modules_that_are_current_are_newer_than_their_sources_when_others_are_built(
    hw: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout makes all sources new, and setup.py, which goes by times, would build every module again."""
    package = hw.ROOT / "src" / "product"
    for suffix in (".py", ".pxd"):
        (package / "other").with_suffix(suffix).touch()
    fake_build(hw, monkeypatch)
    hw.compile_product()
    (library,) = hw.libraries("product/hot")
    translated = hw.ROOT / "build" / "cython" / "src" / "product" / "hot.c"
    translated.parent.mkdir(parents=True)
    translated.touch()
    for path in (library, translated):
        os.utime(path, (0, 0))
    (package / "other.py").write_text("# edited\n")
    hw.compile_product()
    assert library.stat().st_mtime >= translated.stat().st_mtime >= (package / "hot.py").stat().st_mtime


def test_without_a_compiler_the_source_runs_and_one_line_says_so(
    hw: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    builds = fake_build(hw, monkeypatch, works=False)
    assert [hw.compile_product() for _ in range(2)] == [hw.ROOT / "src"] * 2
    assert len(builds) == 1, "a failed build is not repeated while nothing changed"
    assert capsys.readouterr().err.count("interpreted") == 2
    hw.compile_product(force=True)
    assert len(builds) == 2, "setup tries again"


def test_c_of_one_module_that_does_not_compile_is_our_error_and_not_the_compilers(
    hw: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    (hw.ROOT / "src" / "product" / "other.py").touch()
    (hw.ROOT / "src" / "product" / "other.pxd").touch()

    def build(title: str, command: list[str], log: Path, env: dict[str, str], limit: float) -> int:
        log.write_text("headwater: interpreted, because 1 of 2 modules did not compile\n")
        return 0

    monkeypatch.setattr(hw, "watch", build)
    with pytest.raises(hw.Refusal, match="C of 1 hot modules that does not compile"):
        hw.compile_product(strict=True)


def test_interpreted_can_be_asked_for(hw: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    builds = fake_build(hw, monkeypatch)
    monkeypatch.setenv("HEADWATER_INTERPRETED", "1")
    assert hw.compile_product() == hw.ROOT / "src"
    assert builds == []


def test_a_step_that_hangs_is_ended(hw: ModuleType, tmp_path: Path) -> None:
    program = "import time; print('begun', flush=True); time.sleep(600)"
    log = tmp_path / "log"
    log.touch()
    assert hw.watch("hanging", [sys.executable, "-c", program], log, {}, limit=2.0) != 0
    assert "killed after 2 s" in log.read_text()


def test_an_unknown_verb_is_refused_with_the_list_of_verbs() -> None:
    answer = subprocess.run([str(ROOT / "hw"), "dmeo"], capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 2
    assert "demo" in answer.stderr


def test_every_verb_says_what_it_takes(hw: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("setup", "check", "bench", "docs", "lock", "clean"):
        assert hw.main([verb, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"usage: ./hw {verb} ")


def test_every_python_block_of_the_documents_goes_to_the_type_checkers(hw: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "docs" / "adr").mkdir(parents=True)
    (tmp_path / "docs" / "adr" / "0001-one.md").write_text("- as here:\n\n  ```py\n  one = 1\n  ```\n")
    (tmp_path / "docs" / "guide.md").write_text("```py\na = 1\n```\nthen\n```py\nb = a\n```\n```sh\nls\n```\n")
    (tmp_path / "README.md").write_text("```python\nc = 1\n```\n```python\nd = 2\n```\n")
    folder = tmp_path / hw.document_blocks(tmp_path / "blocks")
    written = {path.name: path.read_text("utf-8").split("\n") for path in folder.iterdir()}
    assert written == {
        "0001_one_0.py": ["one = 1", ""],
        "guide_0.py": ["a = 1", "", "", "b = a", ""],
        "readme_0.py": ["c = 1", ""],
        "readme_1.py": ["d = 2", ""],
    }


def test_the_python_that_is_named_runs_the_script(tmp_path: Path) -> None:
    named = tmp_path / "python"
    named.write_text('#!/bin/sh\necho "ran by the named one: $2"\n')
    named.chmod(0o755)
    command = [sys.executable, str(ROOT / "hw"), "help"]
    done = subprocess.run(
        command, env={**os.environ, "HEADWATER_PYTHON": str(named)}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "ran by the named one: help\n"
    absent = {**os.environ, "HEADWATER_PYTHON": str(tmp_path / "absent")}
    refused = subprocess.run(command, env=absent, capture_output=True, text=True, timeout=60)
    assert (refused.returncode, refused.stderr) == (
        1,
        f"hw: HEADWATER_PYTHON names {tmp_path}/absent, where no program is\n",
    )


def test_the_script_can_be_read_by_the_old_python_that_has_to_hand_over() -> None:
    ast.parse((ROOT / "hw").read_text(encoding="utf-8"), feature_version=(3, 7))
