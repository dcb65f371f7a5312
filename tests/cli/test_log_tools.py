"""`headwater log`: finds the logs under a directory, says what is in them, and by its exit status whether they are whole."""

import errno
import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from headwater.cli.main import main
from headwater.durable_files.files import OsFiles
from headwater.jetstream_documents.streams import StreamConfig
from headwater.jetstream_documents.strict_reading import decode_stored
from headwater.jetstream_state.store import StreamDirectory, StreamRecord, file_stem
from headwater.streams.log import Log, LogOptions


def write(log: Log, payload: bytes) -> None:
    log.stage(b"s", b"", payload, 1_700_000_000_000_000_000)
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        log = Log.open(OsFiles(), str(tmp_path / "streams" / name / "log"), LogOptions(), 1)
        for number in range(3):
            write(log, b"%d" % number)
        log.close()
    return tmp_path


def test_inspect_shows_every_log_and_its_segments(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "inspect", str(store), "--json"]) == 0
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [Path(report["log"]).parent.name for report in reports] == ["one", "two"]
    assert all(report["records"] == 3 and report["next_offset"] == 3 for report in reports)
    assert reports[0]["segments"][0]["first"].startswith("2023-11-14T")


def test_verify_finds_a_flipped_bit_and_repair_mends_it(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (segment,) = (store / "streams" / "two" / "log").glob("*.log")
    content = bytearray(segment.read_bytes())
    content[4200] ^= 4
    segment.write_bytes(content)
    assert main(["log", "verify", str(store)]) == 1
    assert "corrupt: offsets" in capsys.readouterr().out
    assert main(["log", "repair", str(store)]) == 0
    assert main(["log", "verify", str(store)]) == 0


@pytest.mark.parametrize("position", [8, 700, 1100, 4000])  # the head, both marks, and what is to be zero
def test_repair_mends_a_head_page_once_and_for_all(
    store: Path, position: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (segment,) = (store / "streams" / "two" / "log").glob("*.log")
    content = bytearray(segment.read_bytes())
    for at in range(position, position + 4):
        content[at] ^= 0xFF
    segment.write_bytes(content)
    assert main(["log", "verify", str(store)]) == 1
    assert "damaged head page" in capsys.readouterr().out
    assert main(["log", "repair", str(store)]) == 0
    assert main(["log", "verify", str(store)]) == 0, capsys.readouterr().out
    assert main(["log", "inspect", str(store), "--json"]) == 0
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [report["records"] for report in reports] == [3, 3]


def test_verify_says_that_both_copies_of_a_state_are_gone_and_repair_makes_them_again(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for copy in (store / "streams" / "two" / "log").glob("log.state.?"):
        copy.unlink()
    assert main(["log", "verify", str(store)]) == 1
    assert "both copies are missing" in capsys.readouterr().out
    assert main(["log", "repair", str(store)]) == 0
    assert main(["log", "verify", str(store)]) == 0


@pytest.mark.parametrize(
    ("about", "left"),
    [({"subjects": ["a"]}, [0, 2]), ({"mirror": {"name": "O"}}, [0]), ({"sources": [{"name": "O"}]}, [0])],
)
def test_repair_cuts_a_torn_write_of_a_copy_where_an_opening_would(
    tmp_path: Path, about: dict[str, object], left: list[int]
) -> None:
    """A copy goes on in its origin behind its last message: it would never fetch those before one that was kept."""
    assert repaired(torn_stream(tmp_path, about)) == left


def test_repair_says_that_it_could_not_read_whether_a_stream_is_a_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torn = torn_stream(tmp_path, {"mirror": {"name": "O"}})
    for copy in torn.glob("*/stream.?"):
        copy.write_bytes(b"damaged")
    assert repaired(torn) == [0, 2]
    assert "both copies of its configuration are damaged" in capsys.readouterr().out


def torn_stream(tmp_path: Path, about: dict[str, object]) -> Path:
    """A store's streams after a power loss: one, of three messages, the second of which was not written whole."""
    folder, torn = tmp_path / "streams" / file_stem("one"), tmp_path / "torn"
    log = Log.open(OsFiles(), str(folder / "log"), LogOptions(sync="never"), 1)
    directory = StreamDirectory(OsFiles(), str(folder))
    directory.identity = log.identity
    directory.save(StreamRecord(decode_stored(msgspec.json.encode({"name": "one", **about}), StreamConfig), 1))
    for number in range(3):
        write(log, b"%d" % number * 600)
    shutil.copytree(tmp_path / "streams", torn)
    log.close()
    (segment,) = torn.glob("*/log/*.log")
    content = bytearray(segment.read_bytes())
    at = content.index(b"1" * 600)
    content[at : at + 512] = bytes(512)
    segment.write_bytes(content)
    return torn


def repaired(streams: Path) -> list[int]:
    """The offsets that are in the one log there after a repair."""
    assert main(["log", "repair", str(streams)]) == 0
    (folder,) = streams.glob("*/log")
    log = Log.open(OsFiles(), str(folder), LogOptions(), 2)
    offsets = [record.offset for record in log.read(0, 10, 1 << 20)]
    log.close()
    return offsets


def test_verify_and_inspect_work_where_nothing_can_be_written(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refusing(path: str, flags: int, *rest: int) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return opened(path, flags, *rest)

    monkeypatch.setattr(os, "open", refusing)
    assert main(["log", "verify", str(store)]) == 0
    assert main(["log", "inspect", str(store)]) == 0


def test_a_directory_without_logs_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "verify", str(tmp_path)]) == 1
    assert "there is no log" in capsys.readouterr().err
