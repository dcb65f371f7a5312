"""The numbers of a process and its machine, as /proc says them, and where there is no /proc."""

import resource
from pathlib import Path

from headwater.iggy.machine import Machine


def test_the_numbers_are_those_of_proc_and_shares_are_since_the_last_question(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text("Name:\tpython\nVmRSS:\t  2048 kB\nThreads:\t7\n")
    (tmp_path / "self" / "io").write_text("read_bytes: 4096\nwrite_bytes: 8192\n")
    (tmp_path / "meminfo").write_text("MemTotal: 1000 kB\nMemAvailable: 400 kB\n")
    (tmp_path / "stat").write_text("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 1 1 1\n")
    (tmp_path / "self" / "fd").mkdir()
    for number in range(3):
        (tmp_path / "self" / "fd" / str(number)).touch()
    machine = Machine(tmp_path)
    (tmp_path / "stat").write_text("cpu  150 0 125 750 175 0 0 0 0 0\n")
    usage = machine.usage()
    assert usage.total_cpu == 37.5, "75 of 200 ticks"
    assert usage[2:-1] == (2048 << 10, 1000 << 10, 400 << 10, 7, 4096, 8192, 3)
    assert usage.most_open_files == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert machine.usage().total_cpu == 0, "nothing since"


def test_the_own_share_of_the_cpu_is_in_percent_of_the_time_between(tmp_path: Path) -> None:
    now = iter((0.0, 10.0))
    machine = Machine(tmp_path, lambda: next(now))
    sum(range(200_000))
    assert 0 < machine.usage().cpu < 100


def test_without_proc_there_are_the_numbers_of_the_interpreter(tmp_path: Path) -> None:
    usage = Machine(tmp_path / "none").usage()
    assert usage.memory > 1 << 20 and usage.total_memory > usage.memory and usage.threads >= 1
    assert (usage.total_cpu, usage.available_memory, usage.read_bytes) == (0.0, 0, 0)


def test_the_real_proc_is_understood() -> None:
    usage = Machine().usage()
    assert usage.memory > 1 << 20 and usage.threads >= 1 and 0 < usage.available_memory <= usage.total_memory
