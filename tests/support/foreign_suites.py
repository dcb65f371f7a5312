"""Runs the test suites of other projects' NATS clients with our broker in the place of `nats-server`, and says what became
of each test. Nothing of theirs is part of this project: a checkout, built, is named from outside.

The suites start `nats-server` from PATH, often on fixed ports (4222 and neighbours): nothing else may use those meanwhile.
"""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import headwater

SUITE_TIMEOUT = 3600.0  # seconds; the largest took 14 minutes on two busy cores
TEST_TIMEOUT = 120.0  # of one test of nats.c, or of nats.js
FILE_TIMEOUT = 900.0  # of one file of nats.js

NATS_JS_SUITES = ("core", "jetstream", "kv", "obj", "services")
NATS_JS_FROM_NPM = {"@nats-io/nkeys": "2.0.3", "@nats-io/nuid": "3.0.0", "@nats-io/jwt": "0.0.11", "ajv": "8.17.1"}
NATS_PY_SUITES = ("nats", "nats-core", "nats-server", "nats-jetstream", "nats-key-value")

_RUST_RESULT = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED)$", re.MULTILINE)
_RUST_PROGRAM = re.compile(r"^([a-z_]+)-[0-9a-f]{16}$")
_JS_TEST = re.compile(r"""Deno\.test\(\s*(["'`])(.+?)\1""")
_REGEX_SIGN = re.compile(r"([.*+?^${}()|\[\]\\/])")
_C_TEST = re.compile(r"_test\((\w+)\)")


def make_launcher(directory: Path) -> Path:
    """A directory to put before PATH, whose `nats-server` is ours: the process itself, for suites send it signals."""
    directory.mkdir(parents=True, exist_ok=True)
    source = Path(headwater.__file__).parent.parent
    launcher = directory / "nats-server"
    launcher.write_text(
        "#!/bin/sh\n"
        "unset PYTHONPATH PYTHONDONTWRITEBYTECODE\n"
        f"export PYTHONPATH='{source}'\n"
        f"exec '{sys.executable}' -m headwater serve \"$@\"\n",
        encoding="utf-8",
    )
    launcher.chmod(0o755)
    return directory


def environment(launcher: Path, scratch: Path) -> dict[str, str]:
    """What a suite runs in: our server first in PATH, temporary files where they are thrown away."""
    scratch.mkdir(parents=True, exist_ok=True)
    return os.environ | {"PATH": f"{launcher}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(scratch)}


def run_nats_py(checkout: Path, python: str, suite: str, env: dict[str, str], report: Path) -> dict[str, bool]:
    """`Class.test` of nats-py's suite in the folder `suite`, and whether it passed; the skipped ones are left out."""
    # The oldest suite names its certificates from the root of the repository, the others from their own folders.
    folder, tests = (checkout, "nats/tests") if suite == "nats" else (checkout / suite, "tests")
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", tests]
    env = env | {"NATS_SERVER_VERSION": "main"}  # else the tests of TLS before INFO are skipped
    subprocess.run(command, cwd=folder, env=env, timeout=SUITE_TIMEOUT, capture_output=True, check=False)
    return dict(junit(report))


def run_async_nats(checkout: Path, env: dict[str, str]) -> dict[str, bool]:
    """`program::test` of async-nats, built by `cargo test -p async-nats --no-run`, and whether it passed."""
    names = {path.stem for path in (checkout / "async-nats" / "tests").glob("*.rs")}
    results: dict[str, bool] = {}
    for program in sorted((checkout / "target" / "debug" / "deps").iterdir()):
        found = _RUST_PROGRAM.fullmatch(program.name)
        if found is None or found[1] not in names:
            continue
        done = subprocess.run(
            [program, "--test-threads=2"],
            cwd=checkout / "async-nats",
            env=env,
            timeout=SUITE_TIMEOUT,
            capture_output=True,
            text=True,
            check=False,
        )
        for test in _RUST_RESULT.finditer(done.stdout):
            results[f"{found[1]}::{test[1]}"] = test[2] == "ok"
    return results


def run_nats_c(checkout: Path, env: dict[str, str]) -> dict[str, bool]:
    """Each test of nats.c, built by cmake in the folder `build`, and whether it passed; benchmarks are left out."""
    program, folder = checkout / "build" / "bin" / "testsuite", checkout / "test"
    results: dict[str, bool] = {}
    for name in _C_TEST.findall((folder / "list_test.txt").read_text()):
        try:
            done = subprocess.run(
                [program, name], cwd=folder, env=env, timeout=TEST_TIMEOUT, capture_output=True, check=False
            )
        except subprocess.TimeoutExpired:
            results[name] = False
        else:
            results[name] = b"ALL PASSED" in done.stdout
    return results


def run_nats_js(
    checkout: Path, deno: Sequence[str], suite: str, without: Collection[str], env: dict[str, str], report: Path
) -> dict[str, bool]:
    """Each test of nats.js' folder `suite`, and whether it passed; those in `without` are not run. `deno`: the program, and
    flags for `deno test`.

    File by file: a test that waits for ever takes the rest of its file with it, and so does one whose promise fails behind
    its back. So what did not pass is run alone once more.
    """

    def run(file: Path, names: Collection[str], limit: float) -> dict[str, bool]:
        chosen = "|".join(_REGEX_SIGN.sub(r"\\\1", name) for name in names)
        command = [deno[0], "test", "-A", *deno[1:], f"--filter=/^({chosen})$/", f"--junit-path={report}", str(file)]
        report.unlink(missing_ok=True)
        try:
            subprocess.run(command, cwd=checkout, env=env, timeout=limit, capture_output=True, check=False)
        except subprocess.TimeoutExpired:
            pass
        return dict(junit(report, with_class=False)) if report.exists() else {}

    results: dict[str, bool] = {}
    for file in sorted((checkout / suite / "tests").glob("*_test.ts")):
        names = [name for _, name in _JS_TEST.findall(file.read_text(encoding="utf-8")) if name not in without]
        found = run(file, names, FILE_TIMEOUT) or dict.fromkeys(names, False)
        for name in [name for name, passed in found.items() if not passed and len(found) > 1]:
            found |= run(file, [name], TEST_TIMEOUT)
        results |= found
    return results


def deno_flags(checkout: Path, std: Path, directory: Path) -> list[str]:
    """Flags with which deno finds all that nats.js' tests import without JSR, where that cannot be reached: in `std`, a
    checkout of denoland/std, in npm, and in nats.js' own folders."""
    imports: dict[str, str] = {}
    for package in sorted([*std.glob("*/deno.json"), *checkout.glob("*/deno.json")]):
        described = json.loads(package.read_text(encoding="utf-8"))
        imports |= {name: at for name, at in described.get("imports", {}).items() if at.startswith("npm:")}
        exports = described.get("exports", {})
        for name, file in (exports if isinstance(exports, dict) else {".": exports}).items():
            imports[described["name"] + name[1:]] = (package.parent / file).as_uri()
    imports |= {name: f"npm:{name}@{version}" for name, version in NATS_JS_FROM_NPM.items()}
    scopes: dict[str, dict[str, str]] = {}
    for own in checkout.glob("*/tests/nst.ts"):  # the launcher of servers, which connects by the folder's own transport
        scopes |= {f"{own.parent.as_uri()}/": {"nst": own.as_uri()}}
    written = directory / "import_map.json"
    written.write_text(json.dumps({"imports": imports, "scopes": scopes}), encoding="utf-8")
    return ["--no-config", "--no-check", f"--import-map={written}"]


def junit(report: Path, *, with_class: bool = True) -> Iterator[tuple[str, bool]]:
    """`Class.test` of each case in a report (without `with_class` only `test`), and whether it passed; those that were
    skipped are left out."""
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is None:
            suite = f"{case.get('classname', '').rsplit('.', 1)[-1]}." if with_class else ""
            name = f"{suite}{case.get('name')}"
            yield name, case.find("failure") is None and case.find("error") is None
