"""What becomes of a message on its way into a copy."""

from headwater.jetstream_documents.streams import StreamSource, SubjectTransform
from headwater.jetstream_sources.rewriting import Rewriting


def test_the_first_transform_that_matches_moves_the_subject() -> None:
    moves = [SubjectTransform(src="o.1", dest="t.one"), SubjectTransform(src="o.2", dest="")]
    rewriting = Rewriting(StreamSource(name="O", subject_transforms=moves))
    assert rewriting.subject(b"o.1") == b"t.one"
    assert rewriting.subject(b"o.2") == b"o.2"


def test_a_source_writes_where_the_message_comes_from_and_drops_what_concerned_its_origin() -> None:
    rewriting = Rewriting(StreamSource(name="O", filter_subject="o.*"))
    block = rewriting.stamped(b"NATS/1.0\r\nX: 1\r\nNats-Stream-Source: P 3 > > p\r\n\r\n", 5, b"o.1", "id")
    assert block == b"NATS/1.0\r\nX: 1\r\nNats-Stream-Source: O 5 o.* > o.1 id\r\n\r\n"
