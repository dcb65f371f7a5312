"""The locked environment: everything by hash, no index named, the small set inside the large one."""

import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

import pytest
from support.checkout import ROOT, name_of, tracked

LOCKS = {path.stem: path for path in sorted((ROOT / "requirements").glob("*.txt"))}
# In pieces, so that this file does not break its own rule.
HOSTS = ["pypi" + ".org", "python" + "hosted.org", "registry.npm" + "js.org", "--index" + "-url", "--find" + "-links"]


def pins(name: str) -> dict[str, str]:
    """Package to version of one lock file, with the markers cut off."""
    return dict(re.findall(r"^([\w.-]+)==([^\s;\\]+)", LOCKS[name].read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_is_pinned_by_hash(name: str) -> None:
    entries = re.split(r"^(?=\w)", LOCKS[name].read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert entries
    assert [entry.split()[0] for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []


def test_no_file_names_a_package_index() -> None:
    naming = []
    for path in tracked(""):
        text = path.read_bytes().decode("utf-8", "ignore").lower()
        naming += [f"{name_of(path)}: {host}" for host in HOSTS if host in text and path.name != "hw"]
    assert naming == []


def test_what_the_demo_installs_is_part_of_what_development_installs() -> None:
    assert pins("demo").items() <= pins("dev").items()
    shared = pins("build").keys() & pins("dev").keys()
    assert {name: pins("build")[name] for name in shared} == {name: pins("dev")[name] for name in shared}


def test_every_direct_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    names = {re.split(r"[^\w.-]", line)[0].lower().replace("_", "-") for line in wanted}
    assert names - pins("dev").keys() == set()


def gigabytes(name: str) -> float:
    """What the packages of a lock file take on this disk; one that is for other systems counts nothing."""
    total = 0
    for package in pins(name):
        try:
            files = importlib.metadata.distribution(package).files or []
        except importlib.metadata.PackageNotFoundError:
            continue
        paths = [Path(str(file.locate())) for file in files]
        total += sum(path.stat().st_blocks * 512 for path in paths if path.exists())
    return total / 1e9


@pytest.mark.skipif(sys.platform != "linux", reason="wheels for other systems have other sizes")
def test_the_readme_says_what_the_environment_takes_on_disk() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"\(([\d.]+) GB for the demo, ([\d.]+) GB with the tests", readme)
    assert found is not None
    assert (float(found[1]), float(found[2])) == pytest.approx((gigabytes("demo"), gigabytes("dev")), rel=0.1)
