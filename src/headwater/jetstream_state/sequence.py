"""Offset and sequence: the one place where the two numberings of a stream's messages meet (ADR "offset and sequence").

A log counts from 0, half-open; JetStream counts from 1, and uses 0 for "none":

    offset     0   1   2   end offset 3
    sequence   1   2   3   last sequence 3     next sequence 4

So the last sequence of a log *is* its end offset, and the sequence of a record is its offset + 1.
"""


def sequence_of(offset: int) -> int:
    """The JetStream sequence of the record at `offset`."""
    return offset + 1


def offset_of(sequence: int) -> int:
    """The log offset of the message with `sequence`."""
    return sequence - 1
