"""The framing up to apache-iggy 0.8: a length, a code, a payload."""

import struct

import pytest

from headwater.errors import IggyError
from headwater.iggy_wire import classic_frames
from headwater.iggy_wire.classic_frames import HEAD, MAX_FRAME, Request


def test_a_request_is_found_once_it_is_whole() -> None:
    frame = classic_frames.request(101, b"payload")
    for cut in range(len(frame)):
        assert classic_frames.find_request(frame, 0, cut) == (HEAD.size if cut < HEAD.size else len(frame))
    assert classic_frames.find_request(b"." + frame, 1, 1 + len(frame)) == Request(101, 9, 16)


def test_requests_follow_one_another() -> None:
    frames = classic_frames.request(1, b"") + classic_frames.request(2, b"xy")
    first = classic_frames.find_request(frames, 0, len(frames))
    assert first == Request(1, 8, 8)
    assert classic_frames.find_request(frames, 8, len(frames)) == Request(2, 16, 18)


@pytest.mark.parametrize("length", [0, 3, MAX_FRAME + 1, (1 << 32) - 1])
def test_a_length_that_no_request_has_is_refused_before_it_has_come(length: int) -> None:
    with pytest.raises(IggyError):
        classic_frames.find_request(struct.pack("<II", length, 1), 0, 8)


def test_a_response_is_status_length_and_payload() -> None:
    assert classic_frames.response(0, b"ab") == b"\0\0\0\0\2\0\0\0ab"
    assert classic_frames.response(1009) == b"\xf1\3\0\0" + bytes(4)
