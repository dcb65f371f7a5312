"""Options of generation V: what is known, what is refused, and what stays as it was."""

import pytest

from headwater import HeaderKind, HeaderValue, TypedHeaders
from headwater.errors import IggyError
from headwater.iggy_wire.options import MAX_OPTIONS, NEVER, OPTIONS, TopicOptions, merged, of_json, read_options
from headwater.model.typed_headers import HeaderForm

U64 = HeaderValue.from_uint64


def block(**values: HeaderValue) -> bytes:
    return TypedHeaders(values.items()).encode(HeaderForm.TYPED)


def refused(raw: bytes, scope: int = 1) -> str:
    with pytest.raises(IggyError) as caught:
        read_options(raw, scope)
    return caught.value.name


def test_what_is_named_is_chosen_and_the_rest_is_as_it_was() -> None:
    chosen = read_options(block(message_expiry=U64(5), max_topic_size=U64(7), segment_size=U64(1 << 20)), 1)
    assert chosen == TopicOptions(5, 7, 1, 1, 1 << 20)
    later = read_options(
        block(max_topic_size=U64(NEVER), compression_algorithm=HeaderValue.from_str("gzip")), 1, chosen
    )
    assert later == TopicOptions(5, 0, 2, 1, 1 << 20)
    assert read_options(b"", 1, chosen) == chosen


def test_what_the_released_client_always_sends_is_taken() -> None:
    durabilities = {"durability": "replicated", "consumer_offset_durability": "persisted"}
    assert read_options(TypedHeaders(durabilities).encode(HeaderForm.TYPED), 1) == TopicOptions()


def test_a_key_that_is_not_known_is_refused_in_every_scope() -> None:
    assert refused(block(colour=HeaderValue.from_str("red"))) == "unsupported_option_key"
    assert refused(block(message_expiry=U64(5)), scope=2) == "unsupported_option_key"


@pytest.mark.parametrize(
    "wrong",
    [
        block(message_expiry=HeaderValue.from_str("soon")),
        block(segment_size=U64(1)),
        block(segment_size=U64(2 << 30)),
        block(compression_algorithm=HeaderValue.from_str("zstd")),
        block(durability=HeaderValue.from_str("eventual")),
        b"\2\1",
        block(message_expiry=U64(5)) * 2,
    ],
)
def test_a_value_that_cannot_be_is_refused(wrong: bytes) -> None:
    assert refused(wrong) == "invalid_option_value"


def test_a_block_with_too_many_is_refused() -> None:
    many = TypedHeaders({f"k{number}": 1 for number in range(MAX_OPTIONS + 1)})
    assert refused(many.encode(HeaderForm.TYPED)) == "options_block_too_large"


def test_every_option_that_is_described_is_taken_with_its_default() -> None:
    for option in OPTIONS[1]:
        default = HeaderValue(HeaderKind(option.kind), option.default)
        read_options(block(**{option.key: default}), 1)


def test_an_update_shows_what_it_names_and_leaves_the_rest() -> None:
    before = block(message_expiry=U64(5), segment_size=U64(1 << 20))
    after = TypedHeaders.decode(merged(before, block(message_expiry=U64(7))), HeaderForm.TYPED)
    assert after.to_python() == {"message_expiry": 7, "segment_size": 1 << 20}


def test_options_from_json_are_texts_numbers_and_booleans() -> None:
    given = {"message_expiry": "5", "max_topic_size": 7, "preallocate_segments": "true", "durability": "persisted"}
    found = TypedHeaders.decode(of_json(given, 1), HeaderForm.TYPED)
    assert found.to_python() == {**given, "message_expiry": 5, "preallocate_segments": True}
    for wrong in ({"colour": "red"}, {"message_expiry": "soon"}, {"message_expiry": -1}, {"durability": 5}):
        with pytest.raises(IggyError) as caught:
            of_json(wrong, 1)
        assert caught.value.number in (4041, 4042)
