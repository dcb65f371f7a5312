"""The configurations of programs have the fields of the documents on the wire, in the same order, with the same defaults."""

import msgspec
import pytest

from headwater.client import configurations
from headwater.client.units import Timed
from headwater.jetstream_documents import consumers, streams

PAIRS = [
    (ours, getattr(streams, name, None) or getattr(consumers, name))
    for name, ours in vars(configurations).items()
    if isinstance(ours, type) and issubclass(ours, Timed) and ours is not Timed
]


@pytest.mark.parametrize(("ours", "wire"), PAIRS, ids=lambda kind: kind.__name__)
def test_fields_and_defaults_are_those_of_the_document(ours: type[msgspec.Struct], wire: type[msgspec.Struct]) -> None:
    def described(kind: type[msgspec.Struct]) -> list[tuple[str, object]]:
        return [
            (field.encode_name, field.default_factory() if callable(field.default_factory) else field.default)
            for field in msgspec.structs.fields(kind)
        ]

    assert described(ours) == described(wire)


def test_every_document_with_times_has_its_configuration() -> None:
    assert {ours.__name__ for ours, _ in PAIRS} == {
        "ClusterInfo",
        "ConsumerConfig",
        "ConsumerInfo",
        "ConsumerLimits",
        "PeerInfo",
        "SourceInfo",
        "StreamConfig",
        "StreamInfo",
        "StreamSource",
    }
