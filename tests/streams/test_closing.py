"""A log is closed without a call that waits for the disk, but for messages that are not durable yet; whatever happens, the
next opening finds what it held."""

from random import Random

import pytest
from support.recording_files import VARIANTS, RecordingFiles, Replay, Variant

from headwater.streams.clean_index import INDEX_FILE
from headwater.streams.log import Log, LogOptions
from headwater.streams.options import SyncPolicy
from headwater.streams.segment import segment_name
from headwater.streams.writer import RESERVED

OPTIONS = LogOptions(preallocate_bytes=1 << 16)
SEGMENT = f"log/{segment_name(0)}"


def append(log: Log, *payloads: bytes) -> None:
    for payload in payloads:
        log.stage(b"s", b"", payload, 1)
    batch = log.seal()
    assert batch is not None
    log.write(batch)
    log.publish(batch)


def opened(files: RecordingFiles, options: LogOptions = OPTIONS) -> Log:
    return Log.open(files, "log", options, 1)


def payloads(log: Log) -> list[bytes]:
    return [record.payload for record in log.read(log.start_offset, 1 << 30, 1 << 30)]


def test_nothing_waits_for_the_disk_and_the_next_opening_reads_no_message() -> None:
    files = RecordingFiles()
    for life in range(3):
        log = opened(files)
        assert log.document == (b"document" if life else None)
        append(log, b"a", b"b")
        calls = len(files.calls)
        log.close(b"document")
        verbs = {call[0] for call in files.calls[calls:]}
        assert verbs <= {"write", "create", "truncate"}, "no sync and no rename"
        assert (files.open_files, files.locks) == (0, set())
    log = opened(files)
    assert payloads(log) == [b"a", b"b"] * 3
    assert (log.recovery.damage, log.recovery.notes, log.next_offset) == ((), (), 6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_power_loss_in_or_after_a_close_costs_nothing(variant: Variant) -> None:
    files = RecordingFiles()
    for expected in ([b"a", b"b"], [b"a", b"b", b"c"]):
        log = opened(files)
        append(log, *expected[log.next_offset :])
        durable = len(files.calls)
        log.close(b"document")
        for calls in range(durable, len(files.calls) + 1):
            for seed in range(1 if variant != "torn" else 20):
                replay = Replay(files)
                replay.advance(calls)
                again = opened(replay.crash(variant, Random(seed)))
                assert payloads(again) == expected
                skipped = again.next_offset - len(expected)
                assert 0 <= skipped <= RESERVED, "the end is known to the stop, where that reached the disk"
                assert not any(damage.certain for damage in again.recovery.damage)
                assert skipped or again.recovery.damage == ()
                append(again, b"more")
                assert payloads(again)[-1] == b"more"


@pytest.mark.parametrize("policy", ["interval", "never"])
def test_messages_that_are_not_durable_yet_are_made_so_by_one_sync(policy: SyncPolicy) -> None:
    files = RecordingFiles()
    log = opened(files, LogOptions(sync=policy, sync_interval_ns=1 << 40))
    append(log, b"a")
    append(log, b"b")
    calls = len(files.calls)
    log.close(b"document")
    assert [call[0] for call in files.calls[calls:]].count("sync") == 1
    assert "rename" not in {call[0] for call in files.calls[calls:]}
    log = opened(files)
    assert (payloads(log), log.document, log.next_offset) == ([b"a", b"b"], b"document", 2)


@pytest.mark.parametrize("policy", ["interval", "never"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_power_loss_after_a_close_leaves_every_message_under_every_policy(
    variant: Variant, policy: SyncPolicy
) -> None:
    files = RecordingFiles()
    options = LogOptions(sync=policy, sync_interval_ns=1 << 40, preallocate_bytes=1 << 16)
    for expected in ([b"a", b"b"], [b"a", b"b", b"c"]):
        log = opened(files, options)
        append(log, *expected[log.next_offset :])
        log.sync()
        durable = len(files.calls)
        log.close(b"document")
        for calls in range(durable, len(files.calls) + 1):
            for seed in range(1 if variant != "torn" else 20):
                replay = Replay(files)
                replay.advance(calls)
                again = opened(replay.crash(variant, Random(seed)), options)
                assert payloads(again) == expected
                # As after a power loss at any other time: without a sync for each batch, more may have been written.
                assert not any(damage.certain for damage in again.recovery.damage)
                assert again.next_offset >= len(expected)


def test_its_end_binds_also_where_its_newest_segment_and_the_record_of_the_end_are_lost() -> None:
    files = RecordingFiles()
    log = opened(files)
    append(log, b"a", b"b")
    log.close()
    files.unlink(SEGMENT)
    files.unlink("log/log.end")
    log = opened(files)
    (loss,) = log.recovery.lost
    assert (loss.start, loss.end, log.next_offset) == (0, 2, 2)


def test_an_index_that_a_power_loss_took_is_told_and_read_from_the_segments() -> None:
    files = RecordingFiles()
    log = opened(files)
    append(log, b"a")
    log.close()
    files.replace_content(f"log/{INDEX_FILE}", b"")
    log = opened(files)
    assert payloads(log) == [b"a"]
    assert any("does not fit" in note for note in log.recovery.notes)


def test_a_log_that_is_to_be_removed_is_closed_without_a_write() -> None:
    files = RecordingFiles()
    log = opened(files)
    append(log, b"a")
    calls = len(files.calls)
    log.close(removing=True)
    log.close(removing=True)
    assert len(files.calls) == calls
    assert (files.open_files, files.locks) == (0, set())
