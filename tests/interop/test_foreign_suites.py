"""Other projects' own test suites, run against our broker: only what foreign_suites.toml lists may fail, with the reason.

Runs where a variable names a built checkout, and says so where none does:

    HEADWATER_NATS_PY    the repository of nats-py; HEADWATER_NATS_PY_PYTHON is a Python 3.13 with its packages and pytest,
                         without fast_mail_parser (0.10 gives lists, which this client does not expect)
    HEADWATER_NATS_RS    nats-io/nats.rs, after `cargo test -p async-nats --no-run`
    HEADWATER_NATS_C     nats-io/nats.c, built in `build`
    HEADWATER_NATS_JS    nats-io/nats.js; HEADWATER_NATS_JS_DENO is deno 2, with flags for `deno test` where the checkout
                         needs them; HEADWATER_NATS_JS_STD is a checkout of denoland/std, where JSR cannot be reached
    HEADWATER_NATS_GO    nats-io/nats.go, for a Go that can have the modules of its go_test.mod

A test that the list expects to fail and that passes is an error, too, unless it is listed as `sometimes`.
"""

import os
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support.foreign_suites import (
    NATS_JS_SUITES,
    NATS_PY_SUITES,
    deno_flags,
    environment,
    make_launcher,
    run_async_nats,
    run_nats_c,
    run_nats_js,
    run_nats_py,
)
from support.nats_go_suites import NATS_GO_SUITES, run_nats_go

NATS_PY, NATS_RS, NATS_C, NATS_GO = (os.environ.get(f"HEADWATER_NATS_{name}", "") for name in ("PY", "RS", "C", "GO"))
NATS_JS, DENO = os.environ.get("HEADWATER_NATS_JS", ""), os.environ.get("HEADWATER_NATS_JS_DENO", "deno").split()
JS_STD = os.environ.get("HEADWATER_NATS_JS_STD", "")
PYTHON = os.environ.get("HEADWATER_NATS_PY_PYTHON", "python3.13")
SUITE_LIMIT = 3700

pytestmark = [pytest.mark.interop, pytest.mark.timeout(SUITE_LIMIT)]


def listed_for(suite: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(Path(__file__).with_name("foreign_suites.toml").read_text())[suite]
    return found


def judge(suite: str, results: dict[str, bool]) -> None:
    listed = listed_for(suite)
    expected = {name for group in listed.get("fails", []) for name in group["tests"]}
    sometimes = {name for group in listed.get("sometimes", []) for name in group["tests"]}
    failed = {name for name, passed in results.items() if not passed}
    assert len(results) >= listed["at_least"], f"only {len(results)} tests of {suite} ran"
    assert sorted(failed - expected - sometimes) == [], f"of {len(results)} tests of {suite}"
    assert sorted((expected & set(results)) - failed) == [], "these pass, and are to be taken off the list"


@pytest.mark.skipif(not NATS_PY, reason="HEADWATER_NATS_PY names no checkout of nats-py: its suites were not run")
@pytest.mark.parametrize("suite", NATS_PY_SUITES)
def test_nats_py_finds_what_it_expects(suite: str, tmp_path: Path) -> None:
    env = environment(make_launcher(tmp_path / "bin"), tmp_path / "scratch")
    judge(suite, run_nats_py(Path(NATS_PY), PYTHON, suite, env, tmp_path / "report.xml"))


@pytest.mark.skipif(not NATS_RS, reason="HEADWATER_NATS_RS names no checkout of nats.rs: its tests were not run")
def test_async_nats_finds_what_it_expects(tmp_path: Path) -> None:
    env = environment(make_launcher(tmp_path / "bin"), tmp_path / "scratch")
    judge("async-nats", run_async_nats(Path(NATS_RS), env))


@pytest.mark.skipif(not NATS_C, reason="HEADWATER_NATS_C names no checkout of nats.c: its tests were not run")
def test_nats_c_finds_what_it_expects(tmp_path: Path) -> None:
    env = environment(make_launcher(tmp_path / "bin"), tmp_path / "scratch")
    judge("nats.c", run_nats_c(Path(NATS_C), env))


@pytest.mark.skipif(not NATS_JS, reason="HEADWATER_NATS_JS names no checkout of nats.js: its suites were not run")
@pytest.mark.parametrize("suite", NATS_JS_SUITES)
def test_nats_js_finds_what_it_expects(suite: str, tmp_path: Path) -> None:
    env = environment(make_launcher(tmp_path / "bin"), tmp_path / "scratch")
    without = {name for group in listed_for(f"nats.js-{suite}").get("hangs", []) for name in group["tests"]}
    report = tmp_path / "report.xml"
    deno = [*DENO, *deno_flags(Path(NATS_JS), Path(JS_STD), tmp_path)] if JS_STD else DENO
    judge(f"nats.js-{suite}", run_nats_js(Path(NATS_JS), deno, suite, without, env, report))


@pytest.mark.skipif(not NATS_GO, reason="HEADWATER_NATS_GO names no checkout of nats.go: its suites were not run")
@pytest.mark.skipif(not shutil.which("go"), reason="there is no Go: nats.go's suites were not run")
@pytest.mark.parametrize("suite", NATS_GO_SUITES)
def test_nats_go_finds_what_it_expects(suite: str, tmp_path: Path) -> None:
    env = environment(make_launcher(tmp_path / "bin"), tmp_path / "scratch")
    judge(f"nats.go-{suite}", run_nats_go(Path(NATS_GO), suite, env, tmp_path))
