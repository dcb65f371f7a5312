"""What is too large, or cannot be decoded, is a row with a reason."""

import pytest
from support.decoded_rows import columns_of_messages

from headwater.spark.options import parse_options
from headwater.spark.record_batches import record_batches
from headwater.spark.schema import source_schema


def test_a_payload_that_is_too_large_is_null_with_a_reason() -> None:
    columns = columns_of_messages([(b"", b"x" * 20), (b"", b""), (b"", b"y" * 10)], with_map=True)
    options = parse_options({"stream": "S", "maxMessageBytes": "10"})
    (batch,) = record_batches([columns], "S", options, source_schema(options))
    assert batch.column("data").to_pylist() == [None, b"", b"y" * 10]
    assert batch.column("data_error").to_pylist() == [
        "the payload has 20 bytes, more than maxMessageBytes=10",
        None,
        None,
    ]


@pytest.mark.parametrize("block", [b"NATS/1.0\r\nno colon\r\n\r\n", b"NATS/1.0\r\nn: \xff\r\n\r\n"])
def test_headers_that_cannot_be_read_are_a_row_with_a_reason(block: bytes) -> None:
    columns = columns_of_messages([(block, b"x"), (b"", b"y")], with_map=True)
    options = parse_options({"stream": "S", "decode": "cloudevents"})
    (batch,) = record_batches([columns], "S", options, source_schema(options))
    assert batch.column("data").to_pylist() == [b"x", b"y"]
    assert batch.column("header_error").to_pylist()[0]
    assert all(batch.column("ce_error").to_pylist())
