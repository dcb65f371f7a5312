"""Many small reads of a file are what `pread` would read, also where the file is shorter than it was, or has grown."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.durable_files import files as files_module
from headwater.durable_files.files import OsFile, OsFiles

maps = str(files_module.__file__).endswith(".so") and sys.platform == "linux"
needs_maps = pytest.mark.skipif(not maps, reason="files are mapped where this is compiled, and on Linux")

LOOKS = 64


def opened(path: Path, data: bytes) -> OsFile:
    path.write_bytes(data)
    file = OsFiles().open(str(path))
    assert isinstance(file, OsFile)
    return file


def looked_at_often(file: OsFile, data: bytes) -> None:
    for number in range(2 * LOOKS):
        at = number * 7919 % (len(data) - 300)
        assert file.look(300, at) == data[at : at + 300]


def areas(path: Path) -> int:
    """How often this process has the file mapped."""
    return Path("/proc/self/maps").read_text().count(str(path))


def test_many_small_reads_are_those_of_pread(tmp_path: Path) -> None:
    data = os.urandom(20_000)
    looked_at_often(opened(tmp_path / "a", data), data)


@needs_maps
def test_a_file_is_mapped_after_some_reads_and_until_it_is_closed(tmp_path: Path) -> None:
    data = os.urandom(20_000)
    file = opened(tmp_path / "a", data)
    file.look(300, 0)
    assert areas(tmp_path / "a") == 0
    looked_at_often(file, data)
    assert areas(tmp_path / "a") == 1
    file.close()
    assert areas(tmp_path / "a") == 0


@needs_maps
def test_a_file_that_nobody_closed_is_unmapped_with_it(tmp_path: Path) -> None:
    data = os.urandom(20_000)
    file = opened(tmp_path / "a", data)
    looked_at_often(file, data)
    del file
    assert areas(tmp_path / "a") == 0


def test_what_a_file_has_grown_by_is_read_too(tmp_path: Path) -> None:
    data = os.urandom(20_000)
    file = opened(tmp_path / "a", data)
    looked_at_often(file, data)
    grown = os.urandom(3 << 20)
    file.pwrite([grown], len(data))
    looked_at_often(file, data + grown)


def test_what_was_written_since_is_read(tmp_path: Path) -> None:
    file = opened(tmp_path / "a", bytes(20_000))
    looked_at_often(file, bytes(20_000))
    file.pwrite([b"changed"], 5000)
    assert file.look(7, 5000) == b"changed"


def test_a_file_that_was_cut_short_reads_as_with_pread(tmp_path: Path) -> None:
    """Of a mapping that is SIGBUS, which would end the process."""
    data = os.urandom(20_000)
    file = opened(tmp_path / "a", data)
    looked_at_often(file, data)
    os.truncate(tmp_path / "a", 5000)
    assert file.look(300, 12_000) == b""
    assert file.look(300, 4900) == data[4900:5000]
    assert file.look(300, 4000) == data[4000:4300]
    (tmp_path / "a").write_bytes(data)
    looked_at_often(file, data)


@needs_maps
@pytest.mark.parametrize("cause", ["os.kill(os.getpid(), signal.SIGBUS)", "other[9000]"])
def test_another_bus_error_ends_the_process_as_ever(tmp_path: Path, cause: str) -> None:
    program = f"""if True:
        import mmap, os, signal
        from headwater.durable_files.files import OsFiles
        path = {str(tmp_path / "a")!r}
        with open(path, "wb") as file:
            file.write(bytes(20_000))
        file = OsFiles().open(path)
        for number in range(200):
            file.look(300, number)
        descriptor = os.open(path, os.O_RDWR)
        other = mmap.mmap(descriptor, 20_000)
        os.truncate(path, 0)
        file.look(300, 5000)
        {cause}
        """
    ended = subprocess.run([sys.executable, "-c", program], timeout=60, check=False, stderr=subprocess.DEVNULL)
    assert ended.returncode in (-7, 128 + 7)


BEGIN = """if True:
    import faulthandler, os, signal, sys, time
    from pathlib import Path
    from headwater.durable_files.files import OsFiles
    path = Path(sys.argv[1])
    path.write_bytes(bytes(20_000))
    file = OsFiles().open(str(path))
    def areas():
        return Path("/proc/self/maps").read_text().count(str(path))
    def in_next_tick():  # of the clock by which it is checked whose the signal is
        before = time.clock_gettime(6)
        while time.clock_gettime(6) == before:
            pass
    def look_until(count):
        end = time.monotonic() + 30
        while areas() != count and time.monotonic() < end:
            for number in range(65):
                file.look(300, number)
        print(areas())
    look_until(1)
"""


def program(path: Path, *lines: str, flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """A process that has the file mapped, and then does what the lines say."""
    text = BEGIN + "".join(f"    {line}\n" for line in lines)
    command = [sys.executable, *flags, "-c", text, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


LOSE = ("os.truncate(path, 0)", "print(file.look(300, 5000))")


@needs_maps
def test_where_somebody_else_takes_the_signal_later_files_are_no_more_mapped(tmp_path: Path) -> None:
    done = program(tmp_path / "a", "faulthandler.enable()", "in_next_tick()", "look_until(0)", *LOSE, "look_until(0)")
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["1", "0", "b''", "0"], "")


@needs_maps
@pytest.mark.parametrize("flags", [(), ("-X", "faulthandler")])
def test_files_are_mapped_again_once_the_signal_is_nobody_elses(tmp_path: Path, flags: tuple[str, ...]) -> None:
    taken = ("faulthandler.enable()", "in_next_tick()", "look_until(0)") if not flags else ()
    given_back = ("faulthandler.disable()", "in_next_tick()", "file.look(300, 0)", "look_until(1)")
    done = program(tmp_path / "a", *taken, *given_back, *LOSE, flags=flags)
    assert (done.returncode, done.stdout.split()[-2:], done.stderr) == (0, ["1", "b''"], "")


@needs_maps
def test_a_handler_that_was_there_before_has_every_other_bus_error(tmp_path: Path) -> None:
    others = ("sys.stdout.flush()", "os.kill(os.getpid(), signal.SIGBUS)")
    done = program(tmp_path / "a", *LOSE, *others, flags=("-X", "faulthandler"))
    assert (done.returncode, done.stdout.split()) == (-7, ["1", "b''"])
    assert done.stderr.startswith("Fatal Python error: Bus error")
