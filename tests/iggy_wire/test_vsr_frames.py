"""The framing of today's clients: headers there and back, what is no header, evictions."""

import struct

import pytest

from headwater.errors import IggyError
from headwater.iggy_wire import eras, vsr_frames
from headwater.iggy_wire.command_codec import REGISTER, SEND
from headwater.iggy_wire.commands import Code
from headwater.iggy_wire.vsr_frames import HEADER_SIZE, MAX_FRAME

CLIENT = bytes(range(16))


def test_a_request_is_found_as_it_was_written_once_it_is_whole() -> None:
    body = b"x" * 10
    frame = vsr_frames.request(Code.SEND_MESSAGES, len(body), CLIENT, 7, 3) + body
    for cut in range(len(frame)):
        missing = vsr_frames.find_request(frame, 0, cut)
        assert missing == (HEADER_SIZE if cut < HEADER_SIZE else len(frame))
    found = vsr_frames.find_request(b"..." + frame, 3, 3 + len(frame))
    assert not isinstance(found, int)
    assert (found.client, found.number, found.operation, found.login) == (CLIENT, 7, SEND, 3)
    assert (found.start, found.end) == (3 + HEADER_SIZE, 3 + len(frame))


def test_a_reply_says_what_it_answers() -> None:
    frame = vsr_frames.request(Code.PING, 0, CLIENT, 9, 3)
    request = vsr_frames.find_request(frame, 0, len(frame))
    assert not isinstance(request, int) and request.code == Code.PING
    reply = vsr_frames.reply(request, 5, 0, status=41)
    found = vsr_frames.find_reply(reply, 0, len(reply))
    assert found == vsr_frames.Reply(9, request.operation, 41, HEADER_SIZE, HEADER_SIZE)
    assert vsr_frames.find_reply(reply, 0, 100) == HEADER_SIZE


@pytest.mark.parametrize("size", [0, HEADER_SIZE - 1, MAX_FRAME + 1, (1 << 32) - 1])
def test_a_size_that_no_frame_has_is_refused_before_it_has_come(size: int) -> None:
    frame = bytearray(vsr_frames.request(Code.PING, 0, CLIENT, 1, 1))
    frame[48:52] = size.to_bytes(4, "little")
    with pytest.raises(IggyError):
        vsr_frames.find_request(frame, 0, len(frame))


def test_a_header_that_is_no_request_is_refused() -> None:
    with pytest.raises(IggyError):
        vsr_frames.find_request(bytes(HEADER_SIZE), 0, HEADER_SIZE)


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        (vsr_frames.BAD_CREDENTIALS, "invalid_credentials"),
        (vsr_frames.BAD_TOKEN, "invalid_personal_access_token"),
        (vsr_frames.INACTIVE, "user_inactive"),
        (vsr_frames.BAD_PROTOCOL, "incompatible_protocol_version"),
        (vsr_frames.STALE, "stale_client"),
    ],
)
def test_an_eviction_is_the_error_that_it_stands_for(reason: int, name: str) -> None:
    with pytest.raises(IggyError) as caught:
        vsr_frames.find_reply(vsr_frames.eviction(reason, bytes(16)), 0, HEADER_SIZE)
    assert caught.value.name == name


def test_an_eviction_names_the_highest_and_the_lowest_protocol_that_is_served() -> None:
    client = bytes(range(16))
    frame = vsr_frames.eviction(vsr_frames.BAD_PROTOCOL, client)
    assert frame[128:144] == client, "a client drops a frame that is not for it"
    assert struct.unpack_from("<II", frame, 144) == (eras.NEWEST_PROTOCOL, eras.PROTOCOL)
    other = vsr_frames.eviction(vsr_frames.BAD_CREDENTIALS, client)
    assert struct.unpack_from("<II", other, 144) == (0, 0), "only this reason has a window"


def test_checksums_and_result_sections_are_where_upstream_has_them() -> None:
    assert vsr_frames.needs_checksum(Code.CREATE_STREAM) and vsr_frames.needs_checksum(Code.LOGIN_REGISTER)
    assert not vsr_frames.needs_checksum(Code.SEND_MESSAGES) and not vsr_frames.needs_checksum(Code.PING)
    with_section = {operation for operation in range(256) if vsr_frames.has_result_section(operation)}
    assert with_section == {REGISTER, *range(64, 160), 161, 162}
