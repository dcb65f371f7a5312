"""Options of generation V: what is known, what is refused, and what stays as it was."""

import pytest

from headwater import HeaderKind, HeaderValue, TypedHeaders
from headwater.errors import IggyError
from headwater.iggy_wire.options import (
    MAX_OPTIONS,
    NEVER,
    OPTIONS,
    TopicOptions,
    canonical,
    check_update,
    merged,
    of_json,
    read_options,
)
from headwater.model.typed_headers import HeaderForm

U64, TEXT = HeaderValue.from_uint64, HeaderValue.from_str


def block(**values: HeaderValue) -> bytes:
    return TypedHeaders(values.items()).encode(HeaderForm.TYPED)


def refused(raw: bytes, scope: int = 1) -> str:
    with pytest.raises(IggyError) as caught:
        read_options(raw, scope)
    return caught.value.name


def test_what_is_named_is_chosen_and_the_rest_is_as_it_was() -> None:
    chosen = read_options(block(message_expiry=U64(5), max_topic_size=U64(7), segment_size=U64(1 << 20)), 1)
    assert chosen == TopicOptions(5, 7, 1, 1, 1 << 20)
    later = read_options(block(max_topic_size=U64(NEVER), compression_algorithm=TEXT("gzip")), 1, chosen)
    assert later == TopicOptions(5, 0, 2, 1, 1 << 20)
    assert read_options(b"", 1, chosen) == chosen
    assert read_options(block(message_expiry=U64(0), max_topic_size=U64(0)), 1, chosen) == chosen, (
        "0: the server's choice"
    )


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("128 MiB", 128 << 20),
        ("1GB", 10**9),
        ("1.5 MiB", 3 << 19),
        ("2097152", 2 << 20),
        ("2 mib", 2 << 20),
        ("4096k", 4096_000),
        ("1 gib", 1 << 30),
    ],
)
def test_a_size_may_be_a_text(text: str, size: int) -> None:
    if size % 512 == 0:
        assert read_options(block(segment_size=TEXT(text)), 1).segment_bytes == size
    assert read_options(block(max_topic_size=TEXT(text)), 1).max_size == size
    assert of_json({"max_topic_size": text}, 1) == block(max_topic_size=U64(size))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7 days", 604_800), ("1h 30m", 5400), ("15min", 900), ("2 weeks 1 day", 1_296_000), ("1M", 2_630_016)],
)
def test_a_duration_may_be_a_text(text: str, seconds: int) -> None:
    assert read_options(block(message_expiry=TEXT(text)), 1).message_expiry == seconds * 1_000_000
    assert of_json({"message_expiry": text}, 1) == block(message_expiry=U64(seconds * 1_000_000))


def test_no_limit_has_its_words() -> None:
    limited = TopicOptions(5, 7)
    assert read_options(block(message_expiry=TEXT("never_expire"), max_topic_size=TEXT("unlimited")), 1, limited) == (
        TopicOptions(0, 0)
    )
    assert read_options(block(message_expiry=TEXT("server_default")), 1, limited) == limited


def test_what_is_kept_is_of_the_kind_that_the_option_has() -> None:
    texts = block(segment_size=TEXT("128 MiB"), preallocate_segments=TEXT("true"), durability=TEXT("persisted"))
    kept = TypedHeaders.decode(canonical(texts, 1), HeaderForm.TYPED)
    assert kept.to_python() == {"segment_size": 128 << 20, "preallocate_segments": True, "durability": "persisted"}
    assert canonical(block(segment_size=U64(0), max_topic_size=U64(0)), 1) == b"", "0: nobody chose"
    number = block(compression_algorithm=HeaderValue.from_uint8(2))
    assert TypedHeaders.decode(canonical(number, 1), HeaderForm.TYPED).to_python() == {"compression_algorithm": "gzip"}


def test_an_update_names_only_what_can_change() -> None:
    known = TopicOptions()
    for block_ in (block(segment_size=U64(1 << 20)), block(durability=TEXT("persisted"))):
        with pytest.raises(IggyError) as caught:
            read_options(block_, 1, known)
        assert caught.value.name == "unsupported_option_key"
    for scope in (2, 3):
        check_update(b"", scope)
        with pytest.raises(IggyError):
            check_update(block(colour=TEXT("red")), scope)


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
        block(segment_size=U64((1 << 20) + 1)),
        block(segment_size=TEXT("many")),
        block(segment_size=TEXT("-1")),
        block(message_expiry=TEXT("7 fortnights")),
        block(message_expiry=TEXT("200 years")),
        block(messages_required_to_save=HeaderValue.from_uint32(0)),
        block(preallocate_segments=TEXT("perhaps")),
        block(message_expiry=HeaderValue.from_bool(True)),
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
    unknown = {"colour": "red", "size": 5, "loud": True}
    assert TypedHeaders.decode(of_json(unknown, 1), HeaderForm.TYPED).to_python() == unknown, (
        "for the command to refuse"
    )
    for wrong in (
        {"colour": ["red"]},
        {"colour": ""},
        {"size": -1},
        {"message_expiry": "soon"},
        {"message_expiry": -1},
        {"durability": 5},
    ):
        with pytest.raises(IggyError) as caught:
            of_json(wrong, 1)
        assert caught.value.name == "invalid_option_value"
