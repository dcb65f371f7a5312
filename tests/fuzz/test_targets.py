"""The corpus, and changed inputs, through their targets: what `./hw bench fuzz` found stays found, without atheris."""

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent
CHANGED = 20  # inputs made of each


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_targets", HERE / "targets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TARGETS = load().TARGETS


def changed(data: bytes, dice: random.Random) -> bytes:
    """A few bytes replaced, removed, or repeated."""
    some = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(some) + 1)
        match dice.randrange(4):
            case 0:
                some[at : at + 1] = bytes([dice.choice(b'\x00\r\n \t{}[]"\xff\x7f019-.>*')])
            case 1:
                del some[at : at + dice.randint(1, 8)]
            case 2:
                some[at:at] = some[at : at + dice.randint(1, 16)]
            case _:
                some[at:at] = dice.randbytes(2)
    return bytes(some)


@pytest.mark.parametrize("name", TARGETS)
def test_a_parser_reads_or_refuses_every_input(name: str) -> None:
    inputs = sorted((HERE / "corpus" / name).iterdir())
    assert inputs
    dice = random.Random(name)
    for path in inputs:
        data = path.read_bytes()
        TARGETS[name](data)
        for _ in range(CHANGED):
            TARGETS[name](changed(data, dice))


def test_each_target_has_a_corpus_of_its_own() -> None:
    folders = {path.name for path in (HERE / "corpus").iterdir()}
    assert folders == set(TARGETS)
    assert sum(path.stat().st_size for path in (HERE / "corpus").rglob("*") if path.is_file()) < 400_000
