"""CloudEvents 1.0 over NATS: the event, its two content modes, the JSON event format."""

from headwater.cloudevents.attributes import AttributeType as AttributeType
from headwater.cloudevents.attributes import AttributeValue as AttributeValue
from headwater.cloudevents.attributes import canonical_string as canonical_string
from headwater.cloudevents.attributes import is_attribute_name as is_attribute_name
from headwater.cloudevents.event import CloudEvent as CloudEvent
from headwater.cloudevents.event import DataKind as DataKind
from headwater.cloudevents.extensions import Extension as Extension
from headwater.cloudevents.extensions import Registry as Registry
from headwater.cloudevents.extensions import documented as documented
from headwater.cloudevents.header_value import decode_header_value as decode_header_value
from headwater.cloudevents.header_value import encode_header_value as encode_header_value
from headwater.cloudevents.json_format import from_json as from_json
from headwater.cloudevents.json_format import to_json as to_json
from headwater.cloudevents.nats_binding import NATSMessage as NATSMessage
from headwater.cloudevents.nats_binding import content_mode as content_mode
from headwater.cloudevents.nats_binding import from_nats as from_nats
from headwater.cloudevents.nats_binding import message_id as message_id
from headwater.cloudevents.nats_binding import to_binary as to_binary
from headwater.cloudevents.nats_binding import to_structured as to_structured
from headwater.cloudevents.subject_token import key_of_token as key_of_token
from headwater.cloudevents.subject_token import subject_token as subject_token
from headwater.errors import CloudEventError as CloudEventError
