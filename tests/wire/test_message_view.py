"""A view of a message: its positions fit what `composed` writes, and `advance` moves all of them."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.message_view import MessageView, composed

WORD = st.binary(min_size=1, max_size=20).filter(lambda word: not set(word) & set(b" \t\r\n"))


def parts(view: MessageView) -> tuple[bytes, bytes, bytes, bytes]:
    buffer = view.buffer
    block, payload = buffer[view.headers : view.payload], buffer[view.payload : view.end]
    return view.subject_bytes(), view.reply_bytes(), bytes(block), bytes(payload)


@given(WORD, st.one_of(st.just(b""), WORD), st.binary(max_size=40), st.binary(max_size=40))
def test_each_part_of_a_composed_message_is_where_the_view_says(
    subject: bytes, reply: bytes, block: bytes, payload: bytes
) -> None:
    view = composed(subject, reply, block, payload)
    assert parts(view) == (subject, reply, block, payload)
    sizes = b"%d %d" % (len(block), len(block) + len(payload)) if block else b"%d" % len(payload)
    tail = (reply + b" " if reply else b"") + sizes + b"\r\n" + block + payload + b"\r\n"
    assert bytes(view.buffer[view.tail : view.end + 2]) == tail
    assert bytes(view.buffer) == subject + b" " + tail


@given(WORD, WORD, st.binary(max_size=9), st.lists(st.binary(min_size=5, max_size=5), min_size=2, max_size=5))
def test_advancing_by_the_length_of_a_message_is_at_the_next_one(
    subject: bytes, reply: bytes, block: bytes, payloads: list[bytes]
) -> None:
    view = composed(subject, reply, block, payloads[0])
    stride = len(view.buffer)
    for payload in payloads[1:]:
        view.buffer = view.buffer + composed(subject, reply, block, payload).buffer
    seen = []
    for _ in payloads:
        seen.append(parts(view))
        view.advance(stride)
    assert seen == [(subject, reply, block, payload) for payload in payloads]
    view.advance(-stride * len(payloads))
    assert parts(view)[3] == payloads[0]


def test_a_released_view_holds_no_buffer() -> None:
    view = composed(b"a", b"", b"", b"x" * 1000)
    view.release()
    assert len(view.buffer) == 0
