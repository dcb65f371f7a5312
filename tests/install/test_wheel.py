"""`pip install` of the built wheel with each single extra, in an environment of its own, is enough for what it stands for.

pip gets the packages of the locked environment and no index (`support/wheelhouse.py`), and the wheel is the one of a machine
without a compiler. `tests/install/run.py` does the same with an index, compiled modules, and all packages whole.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.checkout import ROOT
from support.extra_programs import PROGRAMS
from support.wheelhouse import Environment, InstallFailed, Wheelhouse, build

pytestmark = pytest.mark.slow

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Wheelhouse:
    return Wheelhouse(tmp_path_factory.mktemp("house") / "wheels")


@pytest.fixture(scope="module")
def wheel_alone(wheel: Path, house: Wheelhouse, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    house.provide(PROJECT["dependencies"])
    environment = Environment(tmp_path_factory.mktemp("place") / "environment")
    environment.install(wheel, "", *house.options)
    house.link(environment)
    environment.keep()
    return environment


@pytest.fixture
def environment(wheel_alone: Environment) -> Iterator[Environment]:
    """With the wheel and no extra, again after each test: an install of its own for each took twice as long."""
    yield wheel_alone
    wheel_alone.restore()


@pytest.mark.parametrize("extra", PROGRAMS, ids=lambda extra: extra or "none")
def test_an_extra_installs_alone_and_its_program_runs(
    extra: str, wheel: Path, house: Wheelhouse, environment: Environment
) -> None:
    missing = house.provide([*PROJECT["dependencies"], *EXTRAS.get(extra, [])])
    if missing:
        pytest.skip(f"not installed here: {', '.join(missing)}")
    if extra:
        environment.install(wheel, extra, *house.options)
        house.link(environment)
    environment.runs("-c", PROGRAMS[extra])


def test_the_wheel_alone_has_the_command_and_says_which_extra_a_program_lacks(environment: Environment) -> None:
    command = str(environment.folder / "bin" / "headwater")
    assert "(interpreted)" in environment.runs(command, "version")
    for extra in ("http", "report"):
        with pytest.raises(InstallFailed, match=rf"headwater\[{extra}\]"):
            environment.runs("-c", PROGRAMS[extra])


def test_every_extra_of_users_has_a_program() -> None:
    assert set(EXTRAS) - {"test", "dev"} == set(PROGRAMS) - {""}
