"""All tests, in three lanes for two cores: `./hw test` runs this file.

The compiled tests of our own code run before the reader's eyes. Beside them two lanes take jobs from a queue: the compiled
tests with other programs, the fast part interpreted, then the tests that start Spark. One process waits for disks, timers
and peers for half of its time, so that three keep two cores busy. When the first lane is done, it takes from the queue too.

What failed is run once more in a process of its own when it is little (`MOST_AGAIN` tests of some 20,000): with servers of
others, real clocks and two loaded cores, one run in a few has a failure that no change made. Nothing is hidden by that: the
first failure is printed whole, and the last lines name each test that passed only alone. Each of them is a bug to be found.
"""

import collections
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".hw"
WITH_OTHERS = "(interop or kill)"
FAST = "not (slow or spark or interop or kill)"
MOST_AGAIN = 8
SPARK_PARTS = 3
CLASSES = "tests/spark/test_class_archive.py"
LONGEST = 3600.0
"""Seconds that a lane may take after the other one is done."""
TESTS_FAILED, NOTHING_COLLECTED = 1, 5  # of pytest's exit codes


class Job(NamedTuple):
    """One run of pytest: its title, its arguments, and whether the product is interpreted in it."""

    title: str
    arguments: list[str]
    interpreted: bool = False

    @property
    def _file_name(self) -> str:
        return re.sub(r"\W+", "-", self.title)

    @property
    def log(self) -> Path:
        return STATE / f"lane-{self._file_name}.log"

    @property
    def cache(self) -> Path:
        return STATE / f"cache-{self._file_name}"

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-P", "-m", "pytest", "-o", f"cache_dir={self.cache}", *self.arguments]

    @property
    def environment(self) -> dict[str, str]:
        changes = {"PYTHONPATH": str(ROOT / "src"), "HEADWATER_INTERPRETED": "1"} if self.interpreted else {}
        return {**os.environ, **changes}

    def failed(self) -> list[str]:
        """The tests that failed in the run that is over."""
        try:
            return sorted(json.loads((self.cache / "v/cache/lastfailed").read_text("utf-8")))
        except OSError:
            return []


class Result(NamedTuple):
    """How a job went: pytest's exit code, and the tests that passed only when run again."""

    job: Job
    code: int
    alone: list[str]


class Lane(threading.Thread):
    """Runs jobs of a queue, one after the other. With `shown` their output is the caller's, otherwise it is kept."""

    def __init__(self, jobs: collections.deque[Job], *, shown: bool = False) -> None:
        super().__init__(daemon=True)
        self.results: list[Result] = []
        self._jobs = jobs
        self._shown = shown
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        while True:
            try:
                job = self._jobs.popleft()
            except IndexError:  # none is left
                return
            shutil.rmtree(job.cache, ignore_errors=True)
            job.log.write_bytes(b"")
            code, failed = self._start(job, job.command), job.failed()
            if code == TESTS_FAILED and 0 < len(failed) <= MOST_AGAIN:
                code = self._start(job, [*job.command, "--last-failed", "--last-failed-no-failures", "none"])
            else:
                failed = []
            self.results.append(Result(job, code, [] if code else failed))

    def _start(self, job: Job, command: list[str]) -> int:
        if self._shown:
            self._process = subprocess.Popen(command, cwd=ROOT, env=job.environment)
            return self._process.wait()
        with job.log.open("ab") as output:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=job.environment, stdout=output, stderr=subprocess.STDOUT
            )
            return self._process.wait()

    def stop(self) -> None:
        """End the job that runs; no other is begun."""
        self._jobs.clear()
        if self._process is not None:
            self._process.kill()


def spark_jobs() -> list[Job]:
    """The files that start Spark, in parts of three minutes or so, for all lanes to end at about the same time: the longest
    first, those of the command line last. A part is a session of its own, whose start and first queries take 25 s of CPU,
    and half of that once the first job of all has made an archive of Spark's classes."""
    files = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "mark.spark" in path.read_text("utf-8")]
    names = [path.relative_to(ROOT).as_posix() for path in files]
    names.remove(CLASSES)
    ours = [name for name in names if name.startswith("tests/cli/")]
    others = [name for name in names if name not in ours]
    parts = [
        ("classes", [CLASSES]),
        *((f"part {part + 1} of {SPARK_PARTS}", others[part::SPARK_PARTS]) for part in range(SPARK_PARTS)),
        ("demo", ours),
    ]
    return [Job("with Spark, " + title, ["-m", "spark", *part]) for title, part in parts if part]


def _worth_showing(lines: list[str]) -> list[str]:
    """Of a log that is not printed elsewhere: what was skipped, tried twice or left open, and the last line."""
    return [line for line in lines[:-1] if line.startswith(("SKIPPED ", "RERUN ", "left open "))] + lines[-1:]


def report(results: list[Result]) -> int:
    """Print of each job what `_worth_showing` says, then what failed whole, and last what passed only alone.

    Returns the exit code of all."""
    worst = 0
    for job, code, alone in sorted(results, key=lambda result: (result.code, result.alone)):
        good = code in (0, NOTHING_COLLECTED)
        text = job.log.read_text(errors="replace")
        shown = text if alone or not good else "".join(_worth_showing(text.splitlines(keepends=True)))
        print(f"{shown}hw: {job.title}: {'passed' if good else 'FAILED'}", flush=True)
        worst = worst if good else max(worst, abs(code))
        for test in [] if good else job.failed() or [f"no test, but pytest ended with code {code}"]:
            print(f"hw: {job.title}: FAILED: {test}", flush=True)
    for job, _, alone in results:
        for test in alone:
            print(f"hw: {job.title}: {test} failed, and passed when it was run alone: a bug to be found", flush=True)
    return worst


def main(arguments: list[str]) -> int:
    """Run all tests, or with pytest's `arguments` those that they select, compiled and interpreted."""
    print("hw: two more lanes run beside this one; what failed in them comes last", flush=True)
    brief = ["--hypothesis-profile", "brief"]  # the compiled lane draws the full number of examples from the same tests
    once = arguments or ["--ignore=tests/meta"]  # they read the sources, which are the same
    jobs = collections.deque([Job("interpreted, the fast part", ["-m", FAST, *brief, *once], interpreted=True)])
    if arguments:
        compiled = Job("compiled", arguments)
    else:
        tested = os.environ.get("HEADWATER_META_TESTED")  # by `./hw check`, just before
        meta = ["--ignore=tests/meta"] if tested else []
        compiled = Job("compiled", ["-m", f"not (spark or {WITH_OTHERS})", *meta])
        classes, *with_spark = spark_jobs()
        jobs.extendleft([classes, Job("compiled, with other programs", ["-m", f"{WITH_OTHERS} and not spark"])])
        jobs.extend(with_spark)
    lanes = [Lane(collections.deque([compiled]), shown=True), Lane(jobs), Lane(jobs)]
    try:
        for lane in lanes:
            lane.start()
        lanes[0].join()
        lanes.append(Lane(jobs))
        lanes[-1].start()
        for lane in lanes:
            lane.join(timeout=LONGEST)
    finally:  # also on Ctrl-C
        late = [lane for lane in lanes if lane.is_alive()]
        for lane in late:
            lane.stop()
    return max(report([result for lane in lanes for result in lane.results]), int(bool(late)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
