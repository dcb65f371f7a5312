"""The programs of `examples/` do what they say, on the real nats-server and on our broker."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from support.both_servers import Serve, real_server, serve
from support.checkout import ROOT, tracked
from support.scripted_server import finish

__all__ = ["real_server", "serve"]

EXAMPLES = tracked(".py", under=ROOT / "examples")


def run(name: str, serve: Serve) -> Any:
    """What `main` of an example returns."""
    main = runpy.run_path(str(ROOT / "examples" / f"{name}.py"))["main"]

    async def whole() -> Any:
        async with serve() as url:
            return await main(url)

    return finish(whole(), 60)


def test_every_job_is_done_once_and_a_failed_one_again(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    done = run("work_queue", serve)
    assert sorted(done) == sorted(f"jobs.{number}" for number in range(10))
    assert capsys.readouterr().out == "again: cannot do b'broken'\n"


def test_a_service_answers_refuses_and_counts(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = run("service", serve)
    assert 'service_requests_total{endpoint="add"} 2' in metrics
    assert 'service_errors_total{endpoint="add"} 1' in metrics
    assert capsys.readouterr().out.startswith("b'6.5'\n400 a JSON list of numbers, please")


def test_a_program_follows_its_settings_and_ignores_what_is_none(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = run("configuration", serve)
    assert [(each.log_level, each.workers) for each in seen] == [("debug", 2), ("debug", 8), ("debug", 8), ("error", 8)]
    assert "ignored: workers = 'many'" in capsys.readouterr().out


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_how_to_run_it(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 50
    assert f"python examples/{example.name}" in text
