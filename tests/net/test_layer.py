"""Two stacked layers: bytes pass both, in the right order, and none before both are ready."""

from headwater.net.layer import Stack


class Marker:
    """A layer that prefixes every write with its mark, and removes one byte from the front of every read."""

    def __init__(self, mark: bytes) -> None:
        self.mark = mark
        self.ready = True
        self.ended = False
        self.incoming = bytearray()
        self.outgoing = bytearray()

    def feed(self, data: memoryview) -> None:
        self.incoming += bytes(data)[1:]

    def read_into(self, space: memoryview) -> int:
        size = min(len(space), len(self.incoming))
        space[:size] = self.incoming[:size]
        del self.incoming[:size]
        return size

    def write(self, data: memoryview) -> None:
        self.outgoing += self.mark + bytes(data)

    def take(self) -> bytes:
        taken = bytes(self.outgoing)
        self.outgoing.clear()
        return taken

    def finish(self) -> None:
        self.outgoing += b"." + self.mark


def test_what_is_written_passes_the_upper_layer_first() -> None:
    stack = Stack(Marker(b"T"), Marker(b"W"))
    stack.write(memoryview(b"hi"))
    assert stack.take() == b"TWhi"
    assert stack.take() == b""


def test_what_is_read_passes_the_lower_layer_first() -> None:
    stack = Stack(Marker(b"T"), Marker(b"W"))
    stack.feed(memoryview(b"12hello"))
    space = bytearray(3)
    assert stack.read_into(memoryview(space)) == 3
    assert bytes(space) == b"hel"
    assert stack.read_into(memoryview(space)) == 2
    assert stack.read_into(memoryview(space)) == 0


def test_a_stack_is_ready_when_both_are_and_ended_when_one_is() -> None:
    lower, upper = Marker(b"T"), Marker(b"W")
    stack = Stack(lower, upper)
    assert stack.ready
    upper.ready = False
    assert not stack.ready
    lower.ready, upper.ready = False, True
    assert not stack.ready
    stack.write(memoryview(b"early"))
    assert stack.take() == b"", "what the upper has to say waits until the lower can carry it"
    lower.ready = True
    assert stack.take() == b"TWearly"
    lower.ended = True
    assert stack.ended


def test_both_layers_finish_the_upper_inside_the_lower() -> None:
    stack = Stack(Marker(b"T"), Marker(b"W"))
    stack.finish()
    assert stack.take() == b"T.W.T"
