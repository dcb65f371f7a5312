"""A batch: one JSON array of events, `application/cloudevents-batch+json`.

Batches are for files, and for protocols whose binding has a batch mode, such as HTTP. The NATS binding has none: it
refuses a message with this content type, and nothing here makes a NATS message.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from headwater.cloudevents.attributes import refuse
from headwater.cloudevents.event import BYTE_ORDER_MARK, NOT_JSON, CloudEvent
from headwater.cloudevents.json_format import NOT_BYTES, from_json, to_json
from headwater.errors import CloudEventError

BATCH_CONTENT_TYPE: Final = "application/cloudevents-batch+json"
NOT_AN_ARRAY: Final = "not an array"

_array = msgspec.json.Decoder(list[msgspec.Raw])


def to_batch(events: Iterable[CloudEvent]) -> bytes:
    """The events as one JSON array; `[]` without events. Raises CloudEventError as `to_json` does."""
    return b"[" + b",".join([to_json(event) for event in events]) + b"]"


def from_batch(text: bytes, strict: bool = False) -> list[CloudEvent]:
    """The events in a batch. Raises CloudEventError with the position of the first invalid one."""
    events = []
    for position, outcome in enumerate(read_batch(text, strict)):
        if isinstance(outcome, CloudEventError):
            raise CloudEventError(
                f"event {position} of the batch: {outcome.message}",
                attribute=outcome.attribute,
                header=outcome.header,
                value=outcome.value,
                rule=outcome.rule,
            ) from outcome
        events.append(outcome)
    return events


def read_batch(text: bytes, strict: bool = False) -> Iterator[CloudEvent | CloudEventError]:
    """Yield each element of a batch as an event, or as the error that made it invalid; the other elements are still
    read. Raises CloudEventError when the text is not a JSON array.
    """
    if not isinstance(text, (bytes, bytearray, memoryview)):
        refuse(
            NOT_BYTES, None, text, why=f"a JSON text is bytes here, as it travels, not {type(text).__name__}: encode it"
        )
    try:
        elements = _array.decode(bytes(text).removeprefix(BYTE_ORDER_MARK))
    except msgspec.ValidationError as error:
        refuse(NOT_AN_ARRAY, None, why=f"a batch is a JSON array: {error}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        refuse(NOT_JSON, None, why=str(error))
    for element in elements:
        try:
            yield from_json(bytes(element), strict)
        except CloudEventError as error:
            yield error
