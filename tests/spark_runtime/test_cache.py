"""Where little files are kept, whatever the environment offers."""

import os
from pathlib import Path

import pytest

from headwater.errors import EnvironmentProblem
from headwater.spark_runtime.cache import cache_directory, keep


def test_the_usual_places_come_first(tmp_path: Path) -> None:
    assert (
        cache_directory({"XDG_CACHE_HOME": str(tmp_path / "x"), "HOME": str(tmp_path)}) == tmp_path / "x" / "headwater"
    )
    assert cache_directory({"HOME": str(tmp_path)}) == tmp_path / ".cache" / "headwater"


def test_without_a_writable_home_it_is_a_private_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    directory = cache_directory({"HOME": "/proc/nowhere"})
    assert directory == tmp_path / f"headwater-{os.getuid()}"
    assert directory.stat().st_mode & 0o077 == 0


def test_a_temporary_directory_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    (tmp_path / "headwater-424242").mkdir()
    monkeypatch.setattr("os.getuid", lambda: 424242)
    with pytest.raises(EnvironmentProblem, match="another user"):
        cache_directory({})


def test_a_file_is_kept_as_it_is_and_repaired_when_it_is_not(tmp_path: Path) -> None:
    path = keep(tmp_path / "deep" / "tool", "text", mode=0o755)
    made = path.stat().st_ino
    keep(path, "text", mode=0o755)
    assert path.stat().st_ino == made
    path.write_bytes(b"\xff damaged")
    keep(path, "text", mode=0o755)
    assert path.read_text() == "text"
    path.chmod(0o644)
    keep(path, "text", mode=0o755)
    assert path.stat().st_mode & 0o777 == 0o755
    assert list(path.parent.iterdir()) == [path]
