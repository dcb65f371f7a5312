"""benchmarks/bench_fuzz.py: inputs follow from a seed, most are short, and one that kills its process is found again."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from support.checkout import ROOT

LONG, SHORT = bytes(range(256)) * 4, b"PING\r\n"


@pytest.fixture
def fuzzer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The fuzzer, with a corpus of a long input and a short one for the target `x`."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    module = import_module("bench_fuzz")
    corpus = tmp_path / "corpus"
    (corpus / "x").mkdir(parents=True)
    for name, data in (("long", LONG), ("short", SHORT)):
        (corpus / "x" / name).write_bytes(data)
    monkeypatch.setattr(module, "CORPUS", corpus)
    monkeypatch.setattr(module, "ROUND", 320)
    return module


def test_inputs_follow_from_their_seed(fuzzer: ModuleType) -> None:
    changes = fuzzer.Changes([LONG, SHORT])
    assert list(changes.made(7)) == list(changes.made(7))
    assert list(changes.made(7)) != list(changes.made(8))


def test_most_inputs_are_short_and_some_are_whole(fuzzer: ModuleType) -> None:
    made = list(fuzzer.Changes([LONG, SHORT]).made(7))
    longer = [data for data in made if len(data) > fuzzer.SHORT]
    assert len(made) == fuzzer.ROUND
    assert len(made) // 64 < len(longer) <= len(made) // fuzzer.LONG_ONES
    assert max(map(len, longer)) > len(LONG) // 2


def test_a_failing_input_is_kept(fuzzer: ModuleType, tmp_path: Path) -> None:
    def refuse_lines(data: bytes) -> None:
        assert b"\n" not in data[:40]

    with pytest.raises(AssertionError):
        fuzzer.change_and_try("x", refuse_lines, 60.0, tmp_path / "x")
    (kept,) = (tmp_path / "corpus" / "x").glob("failed-*")
    assert b"\n" in kept.read_bytes()[:40]


class Killed(BaseException):
    """Stands for the end of the process."""


def test_an_input_that_killed_its_process_is_found_again(fuzzer: ModuleType, tmp_path: Path) -> None:
    seen: list[bytes] = []

    def die_of_the_hundredth(data: bytes) -> None:
        seen.append(data)
        if len(seen) == 100:
            raise Killed

    fuzzer.seed_file(tmp_path / "x").write_bytes(b"7")
    with pytest.raises(Killed):
        fuzzer.find_killer("x", die_of_the_hundredth, tmp_path / "x")
    assert (tmp_path / "corpus" / "x" / "failed-7").read_bytes() == seen[-1]
    assert seen == list(fuzzer.Changes([LONG, SHORT]).made(7))[:100]


def test_a_round_without_a_killer_keeps_nothing(fuzzer: ModuleType, tmp_path: Path) -> None:
    fuzzer.seed_file(tmp_path / "x").write_bytes(b"7")
    fuzzer.find_killer("x", lambda data: None, tmp_path / "x")
    assert not list((tmp_path / "corpus" / "x").glob("failed-*"))
