"""The writer of client ops: exact bytes, nothing half-written, and nothing that could inject an op."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater
from headwater.errors import SubjectError
from headwater.wire.handshake import ConnectOptions, decode_connect
from headwater.wire.memory import OutputBuffer
from headwater.wire.publish import KNOWN_SUBJECTS, OpWriter


def written(write: Callable[[OpWriter], object]) -> bytes:
    output = OutputBuffer()
    write(OpWriter(output))
    return output.take()


@pytest.mark.parametrize(
    ("arguments", "op"),
    [
        (("a", "", b"", b""), b"PUB a 0\r\n\r\n"),
        (("a.b", "", b"", b"hi"), b"PUB a.b 2\r\nhi\r\n"),
        (("a", "r.1", b"", b"hi"), b"PUB a r.1 2\r\nhi\r\n"),
        (("a", "", b"HDR", b"hi"), b"HPUB a 3 5\r\nHDRhi\r\n"),
        (("a", "r", b"HDR", b""), b"HPUB a r 3 3\r\nHDR\r\n"),
        (("é", "\udcff", b"", b""), b"PUB \xc3\xa9 \xff 0\r\n\r\n"),
    ],
)
def test_pub_and_hpub(arguments: tuple[str, str, bytes, bytes], op: bytes) -> None:
    assert written(lambda writer: writer.publish(*arguments)) == op


@pytest.mark.parametrize("size", [0, 1, 9, 10, 99, 100, 999, 1000, 65535, 65536, 1048576])
def test_sizes_are_written_in_decimal(size: int) -> None:
    assert written(lambda writer: writer.publish("a", "", b"", bytes(size))).startswith(b"PUB a %d\r\n" % size)
    head = written(lambda writer: writer.publish("a", "", bytes(size), b"x"))
    assert head.startswith(b"HPUB a %d %d\r\n" % (size, size + 1) if size else b"PUB a 1\r\n")


@pytest.mark.parametrize(
    "bad", ["", " ", "a b", "a\tb", "a\r", "a\nb", ".a", "a.", "a..b", "a.*", ">", "\ud800", "\udc20"]
)
def test_a_bad_subject_writes_nothing_also_as_the_first_one(bad: str) -> None:
    output = OutputBuffer()
    writer = OpWriter(output)
    for _ in range(2):
        with pytest.raises(SubjectError):
            writer.publish(bad, "", b"", b"x")
        if bad:
            with pytest.raises(SubjectError):
                writer.publish("good", bad, b"", b"x")
    assert output.size == 0
    writer.publish("good", "", b"", b"x")
    assert output.take() == b"PUB good 1\r\nx\r\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [("r.1", "r. 1"), ("r.1", "r."), ("r.1", "r.*"), ("r r.1", "r r.2"), ("1", ".2"), ("r.1", "r.\n")],
)
def test_a_reply_subject_is_checked_also_behind_one_that_looks_alike(first: str, second: str) -> None:
    writer = OpWriter(OutputBuffer())
    for reply in (first, second):
        if reply == "r.1" or reply == "1":
            writer.publish("a", reply, b"", b"")
        else:
            with pytest.raises(SubjectError):
                writer.publish("a", reply, b"", b"")


def test_many_subjects_in_turn_are_all_written_right() -> None:
    output = OutputBuffer()
    writer = OpWriter(output)
    subjects = [f"s.{number % (KNOWN_SUBJECTS + 7)}" for number in range(3 * KNOWN_SUBJECTS)]
    for subject in subjects:
        writer.publish(subject, "", b"", b"")
    assert output.take() == b"".join(b"PUB %s 0\r\n\r\n" % subject.encode() for subject in subjects)


@pytest.mark.skipif(headwater.__compiled__, reason="compiled, nobody sees what is known")
def test_of_subjects_in_turn_most_are_known_when_there_are_a_few_too_many() -> None:
    writer = OpWriter(OutputBuffer())
    subjects = [f"s.{number}" for number in range(KNOWN_SUBJECTS + 7)]
    found = 0
    for subject in subjects * 3:
        found += subject in writer.known
        writer.publish(subject, "", b"", b"")
    assert found > 1.4 * KNOWN_SUBJECTS
    assert len(writer.known) <= KNOWN_SUBJECTS


ops = st.tuples(
    st.sampled_from(["a", "b"]),
    st.sampled_from(["", "r.1"]),
    st.sampled_from([b"", b"NATS/1.0\r\n\r\n"]),
    st.integers(0, 3),
)


@given(st.lists(ops, max_size=20))
def test_a_control_line_that_is_kept_is_used_for_its_subject_and_size_only(
    script: list[tuple[str, str, bytes, int]],
) -> None:
    output = OutputBuffer()
    writer = OpWriter(output)
    wanted = b""
    for subject, reply, block, size in script:
        writer.publish(subject, reply, block, bytes(size))
        head = (
            f"{'HPUB' if block else 'PUB'} {subject} {reply + ' ' if reply else ''}{f'{len(block)} ' if block else ''}"
        )
        wanted += b"%b%d\r\n%b%b\r\n" % (head.encode(), len(block) + size, block, bytes(size))
    assert output.take() == wanted


@given(st.text(max_size=12), st.text(max_size=12), st.binary(max_size=20))
def test_whatever_the_subject_one_control_line_is_written_or_none(subject: str, reply: str, payload: bytes) -> None:
    output = OutputBuffer()
    try:
        OpWriter(output).publish(subject, reply, b"", payload)
    except SubjectError:
        assert output.size == 0
        return
    op = output.take()
    assert op.endswith(b"\r\n" + payload + b"\r\n")
    line = op.removesuffix(b"\r\n" + payload + b"\r\n")
    assert b"\r" not in line
    assert b"\n" not in line
    assert len(line.replace(b"\t", b" ").split(b" ")) == (4 if reply else 3)


def test_sub_and_unsub() -> None:
    assert written(lambda writer: writer.subscribe("a.*.>", "", 7)) == b"SUB a.*.> 7\r\n"
    assert written(lambda writer: writer.subscribe("a", "workers", 8)) == b"SUB a workers 8\r\n"
    assert written(lambda writer: writer.unsubscribe(7)) == b"UNSUB 7\r\n"
    assert written(lambda writer: writer.unsubscribe(7, 3)) == b"UNSUB 7 3\r\n"
    assert written(lambda writer: writer.unsubscribe(7, -3)) == b"UNSUB 7\r\n"


@pytest.mark.parametrize(
    ("subject", "queue"),
    [("", ""), ("a b", ""), (">.a", ""), ("\ud800", ""), ("a", "q q"), ("a", "q\n"), ("a", "\x01")],
)
def test_a_bad_subscription_writes_nothing(subject: str, queue: str) -> None:
    output = OutputBuffer()
    with pytest.raises(SubjectError):
        OpWriter(output).subscribe(subject, queue, 1)
    assert output.size == 0


def test_connect_ping_and_pong() -> None:
    assert written(OpWriter.ping) == b"PING\r\n"
    assert written(OpWriter.pong) == b"PONG\r\n"
    op = written(lambda writer: writer.connect(ConnectOptions(verbose=False, name="n")))
    assert op.startswith(b"CONNECT {")
    assert op.endswith(b"}\r\n")
    assert decode_connect(op[8:-2]).name == "n"
