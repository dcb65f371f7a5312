"""Identifiers, partitionings, consumers and strategies: their bytes, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import IggyError
from headwater.iggy_wire.identifiers import (
    CONSUMER,
    STRATEGY,
    Consumer,
    Identifier,
    Partitioning,
    PollingStrategy,
    StrategyKind,
)
from headwater.iggy_wire.layout import Reader

NAMES = st.text(min_size=1, max_size=60).filter(lambda text: len(text.encode()) <= 255)
IDENTIFIERS = st.builds(Identifier, st.integers(0, (1 << 32) - 1) | NAMES)
PARTITIONINGS = (
    st.just(Partitioning.balanced())
    | st.integers(0, (1 << 32) - 1).map(Partitioning.partition)
    | st.binary(min_size=1, max_size=255).map(Partitioning.key)
)


@given(IDENTIFIERS)
def test_an_identifier_is_read_as_it_was_written(identifier: Identifier) -> None:
    assert Identifier.read(Reader(identifier.encode())) == identifier


@given(PARTITIONINGS)
def test_a_partitioning_is_read_as_it_was_written(where: Partitioning) -> None:
    assert Partitioning.read(Reader(where.encode())) == where


@given(IDENTIFIERS, st.sampled_from(list(StrategyKind)), st.integers(0, (1 << 64) - 1))
def test_consumers_and_strategies_are_read_as_they_were_written(
    reader: Identifier, kind: StrategyKind, value: int
) -> None:
    for consumer in (Consumer.single(reader.value), Consumer.group(reader.value)):
        assert CONSUMER.read(Reader(CONSUMER.write(consumer))) == consumer
    strategy = PollingStrategy(kind, value)
    assert STRATEGY.read(Reader(STRATEGY.write(strategy))) == strategy


@pytest.mark.parametrize("raw", [b"", b"\1", b"\1\3abc", b"\2\0", b"\3\1a", b"\2\5abc", b"\2\1\xff"])
def test_what_is_no_identifier_is_refused(raw: bytes) -> None:
    with pytest.raises(IggyError):
        Identifier.read(Reader(raw))


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"\0\0", "invalid_command"),
        (b"\4\0", "invalid_command"),
        (b"\1\1x", "invalid_key_value_length"),
        (b"\2\3abc", "invalid_key_value_length"),
        (b"\3\0", "invalid_key_value_length"),
    ],
)
def test_what_is_no_partitioning_is_refused(raw: bytes, name: str) -> None:
    with pytest.raises(IggyError) as caught:
        Partitioning.read(Reader(raw))
    assert caught.value.name == name


def test_lengths_and_keys_are_upstreams() -> None:
    for wrong in ("", "x" * 256):
        with pytest.raises(IggyError):
            Identifier(wrong)
    for key in (b"", b"x" * 256, ""):
        with pytest.raises(IggyError):
            Partitioning.key(key)
    assert Partitioning.key(5).raw == b"\5" + bytes(7)
    assert Partitioning.key("é").raw == "é".encode()
    assert str(Identifier(5)) == "5"
