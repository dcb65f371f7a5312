"""The wheel of this checkout, and environments that pip installs it into: clean ones, with one extra or none.

`build` makes the wheel from a copy of the sources: setuptools writes beside them. `Wheelhouse` gives pip, without an index,
what the locked environment holds: it writes a wheel of each package that is installed here, from its list of files, so that
pip resolves and unpacks what it would fetch. Of packages above `LARGEST` (Spark, Java, Arrow) the wheel has the description
only, and the modules are linked: half a gigabyte would be written for nothing.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from packaging.requirements import Requirement
from support.checkout import ROOT

LARGEST = 8 << 20  # bytes of a package that is packed whole
LIMIT = 300.0  # seconds that one program may take
WITHOUT_RECORD = ("/RECORD", "/INSTALLER", "/REQUESTED", "/direct_url.json")


class InstallFailed(Exception):
    """pip, or a program in the environment, ended with an error; the text is its output."""


def run(command: list[str], **changes: str) -> str:
    """Output of a program that knows nothing of this checkout's environment but `changes`."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HEADWATER", "VIRTUAL"))
    }
    environment |= {
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
        **changes,
    }
    done = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if done.returncode != 0:
        raise InstallFailed(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


def build(folder: Path, *, compiled: bool = False) -> Path:
    """The wheel: with hot modules compiled, which takes minutes, or as it is where no compiler is."""
    source = folder / "source"
    source.mkdir(parents=True)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, source / name)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    run([*command, "-w", str(folder), str(source)], HEADWATER_INTERPRETED="" if compiled else "1")
    shutil.rmtree(source)
    (wheel,) = folder.glob("headwater-*.whl")
    return wheel


class Environment:
    """A virtual environment of this Python that holds nothing but what is installed into it, not even pip."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        self.python = folder / "bin" / "python"
        (self.packages,) = folder.glob("lib/python*/site-packages")
        self._kept: set[Path] = set()

    def install(self, wheel: Path, extra: str, *options: str) -> None:
        """`pip install headwater[extra]`; raises InstallFailed with what pip says."""
        pip = self.folder / "tools" / "pip"  # a link: pip takes packages beside it for installed ones
        if not pip.exists():
            pip.parent.mkdir()
            pip.symlink_to(str(importlib.metadata.distribution("pip").locate_file("pip")))
        wanted = f"headwater[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
        run([str(self.python), str(pip), "install", "-q", *options, wanted])

    def keep(self) -> None:
        """What is there now is what `restore` leaves."""
        self._kept = self._entries()

    def restore(self) -> None:
        """Remove the packages and programs that came since `keep`: pip would need as long as for installing them."""
        for entry in self._entries() - self._kept:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def runs(self, *command: str) -> str:
        """Output of Python with these arguments, far from the checkout."""
        return run([str(self.python), "-I", "-W", "ignore", *command])

    def _entries(self) -> set[Path]:
        return {*self.packages.iterdir(), *self.python.parent.iterdir()}


class Wheelhouse:
    """Wheels of installed packages in `folder`, written when they are first wanted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self._large: dict[str, importlib.metadata.Distribution] = {}
        self._known: set[str] = set()

    @cached_property
    def options(self) -> list[str]:
        """For pip: these wheels and nothing else. Bytecode is left to those who run it."""
        return ["--no-index", "--no-compile", "-f", str(self._folder)]

    def provide(self, wanted: Iterable[str]) -> list[str]:
        """Have wheels of what the requirements bring. Returns what they name and this environment does not have."""
        missing, seen = [], set()
        waiting = [(Requirement(each), "") for each in wanted]
        while waiting:
            requirement, extra = waiting.pop()
            name = re.sub(r"[-_.]+", "-", requirement.name).lower()
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
                continue
            if (name, *sorted(requirement.extras)) in seen:
                continue
            seen.add((name, *sorted(requirement.extras)))
            try:
                found = importlib.metadata.distribution(name)
            except importlib.metadata.PackageNotFoundError:
                missing.append(name)
                continue
            if name not in self._known:
                self._known.add(name)
                self._pack(name, found)
            waiting += [
                (Requirement(more), added) for more in found.requires or [] for added in (*requirement.extras, "")
            ]
        return missing

    def link(self, environment: Environment) -> None:
        """Links to the modules of those large packages that pip has installed."""
        for name, package in self._large.items():
            description = next(str(file.parent) for file in package.files or [] if file.match("*.dist-info/METADATA"))
            if not (environment.packages / description).exists():
                continue
            for top in {file.parts[0] for file in package.files or []} - {"..", "__pycache__", description}:
                source, target = Path(str(package.locate_file(top))), environment.packages / top
                if not source.exists():
                    raise InstallFailed(f"{name} lists {top}, which is not there")
                if not target.exists():
                    target.symlink_to(source)

    def _pack(self, name: str, package: importlib.metadata.Distribution) -> None:
        files = [file for file in package.files or [] if file.parts[0] != ".." and "__pycache__" not in file.parts]
        files = [file for file in files if not f"/{file}".endswith(WITHOUT_RECORD)]
        if sum(Path(str(file.locate())).stat().st_size for file in files) > LARGEST:
            self._large[name] = package
            files = [file for file in files if file.parts[0].endswith(".dist-info")]
        (description,) = {file.parts[0] for file in files if file.parts[0].endswith(".dist-info")}
        tags = re.findall(r"^Tag: (\S+)$", package.read_text("WHEEL") or "", re.MULTILINE)
        parts = [sorted(set(each)) for each in zip(*(tag.split("-") for tag in tags), strict=True)]
        stem = "-".join([description.removesuffix(".dist-info"), *(".".join(part) for part in parts)])
        with zipfile.ZipFile(self._folder / f"{stem}.whl", "w") as wheel:
            for file in files:
                wheel.write(str(file.locate()), str(file))
            record = "".join(f"{file},,\n" for file in [*files, f"{description}/RECORD"])
            wheel.writestr(f"{description}/RECORD", record)
