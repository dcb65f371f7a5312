"""The first word chooses a verb, and nothing else is imported."""

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

import headwater
from headwater.cli import main as command
from headwater.errors import EnvironmentProblem, JetStreamError


def test_without_a_verb_the_verbs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    listed = capsys.readouterr().out
    assert all(verb in listed for verb in command.VERBS)


def test_an_unknown_verb_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["srve"]) == 2
    refused = capsys.readouterr()
    assert refused.out == ""
    assert "'srve'; did you mean 'serve'?" in refused.err
    assert refused.err.count("\n") == 1


def test_version_says_whether_the_hot_modules_are_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["version"]) == 0
    assert capsys.readouterr().out.split() == [
        "headwater", headwater.__version__, "(compiled)" if headwater.__compiled__ else "(interpreted)",
    ]  # fmt: skip
    assert command.main(["version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "version": headwater.__version__,
        "compiled": headwater.__compiled__,
    }
    assert command.main(["version", "of", "python"]) == 2
    assert "usage" in capsys.readouterr().err


def test_every_verb_has_its_module() -> None:
    modules = {name: verb.target.partition(":")[0] for name, verb in command.VERBS.items()}
    assert [name for name, module in modules.items() if not find_spec(module)] == []


def test_a_foreseen_error_is_one_line_and_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(argv: list[str]) -> int:
        raise EnvironmentProblem("no Java", hint="install one")

    monkeypatch.setattr("headwater.cli.doctor.main", fail)
    assert command.main(["doctor"]) == 1
    assert capsys.readouterr().err == "headwater doctor: no Java (install one)\n"


@pytest.mark.parametrize(("verb", "module", "status"), [("serve", "serving.command", 0), ("doctor", "cli.doctor", 130)])
def test_sigint_before_a_verb_handles_signals_ends_it_without_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: str, module: str, status: int
) -> None:
    def interrupted(argv: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"headwater.{module}.main", interrupted)
    assert command.main([verb]) == status
    assert capsys.readouterr().err == ""


def test_the_module_runs_as_a_program() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "headwater", "version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert answer.stdout.startswith("headwater ")


def test_a_server_that_has_stopped_is_gone_without_the_interpreters_end() -> None:
    """Whoever sees its last connection end may start another at once: unloading modules would take 10 to 40 ms more."""
    program = """
import atexit, sys
atexit.register(print, "the end of an interpreter", file=sys.stderr)
sys.argv = ["headwater", "serve", "-a", "127.0.0.1", "-p", "-1"]
from headwater.cli.main import main
sys.exit(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        for line in server.stderr:
            if "Server is ready" in line:
                break
        server.terminate()
        rest = server.stderr.read()
        assert server.wait(20) == 0
    assert "Server Exiting.." in rest
    assert "the end of an interpreter" not in rest


def test_a_foreseen_error_is_json_where_json_is_wanted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(argv: list[str]) -> int:
        raise JetStreamError(404, 10059, "stream not found")

    monkeypatch.setattr("headwater.cli.doctor.main", fail)
    assert command.main(["doctor", "--json"]) == 1
    error = json.loads(capsys.readouterr().err)["error"]
    assert (error["type"], error["err_code"], error["code"]) == ("JetStreamError", 10059, 404)
    assert command.main(["doctor", "--", "--json"]) == 1
    assert capsys.readouterr().err.startswith("headwater doctor: ")


def test_a_reader_that_has_enough_ends_it_quietly() -> None:
    """`headwater completion bash | head -1`: the text is longer than what a pipe holds."""
    again = "import headwater.cli.main as m, headwater.cli.doctor as d\nd.main = lambda a: print('x' * 200_000) or 0\n"
    for program in (
        again + "import sys; sys.exit(m.main(['doctor']))",
        again + "import sys; sys.exit(m.main(['--json', 'doctor']))",
    ):
        with subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.read(1)
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(30) == command.PIPE_CLOSED
