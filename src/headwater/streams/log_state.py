"""The log's own small document: the facts that must survive the loss of any segment.

Saved in two copies (durable_files/documents.py) when the log is made, when a segment is opened, when the reservation is
extended (once per `RESERVATION` records) and at close; never per batch.
"""

import json
from dataclasses import dataclass, field
from typing import Self

from headwater.streams.log_format import IDENTITY_SIZE, OLDEST_VERSION, VERSION

RESERVATION = 1 << 20  # offsets; how far the numbers may jump when the newest segment is destroyed beyond reading


@dataclass(frozen=True, slots=True)
class LogState:
    """`identity`: of the log. `start_offset`: where it begins. `reserved_end`: no offset at or above it was ever used.
    `active_base`: base offset of the newest segment. `marks_are_synced`: whether every mark was made durable with its
    batch, so that the newest one found is the newest there was (sync policy `always`, or a clean close). `index_crc`: of
    the index file that the last close wrote, while nothing was written since; 0: read the segments. `closed`: nothing was
    written since the last close, so `reserved_end` is the exact end. `sealed`: by base offset, the generation and the size
    in bytes that a sealed segment has at least; so that an older copy is noticed, which brings deleted records back."""

    identity: bytes
    start_offset: int
    reserved_end: int
    active_base: int
    marks_are_synced: bool
    index_crc: int = 0
    closed: bool = False
    sealed: dict[int, tuple[int, int]] = field(default_factory=dict)

    def encode(self) -> bytes:
        """JSON, so that a person with `strings` can read it."""
        return json.dumps(
            {
                "format_version": VERSION,
                "identity": self.identity.hex(),
                "start_offset": self.start_offset,
                "reserved_end": self.reserved_end,
                "active_base": self.active_base,
                "marks_are_synced": self.marks_are_synced,
                "index_crc": self.index_crc,
                "closed": self.closed,
                "sealed": self.sealed,
            }
        ).encode()

    @classmethod
    def decode(cls, document: bytes) -> Self | None:
        """None when this is not a state that this version, or an older one that it reads, wrote."""
        try:
            fields = json.loads(document)
            identity = bytes.fromhex(fields["identity"])
            start, reserved, active = fields["start_offset"], fields["reserved_end"], fields["active_base"]
            version, synced = fields["format_version"], fields["marks_are_synced"]
            index_crc = fields.get("index_crc", 0)  # logs that the first release closed have no such field
            closed = fields.get("closed", index_crc != 0)  # nor this one
            sealed = {int(base): (int(pair[0]), int(pair[1])) for base, pair in fields.get("sealed", {}).items()}
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            return None
        numbers_are_good = all(type(number) is int and number >= 0 for number in (start, reserved, active, index_crc))
        if (
            type(version) is not int
            or not OLDEST_VERSION <= version <= VERSION
            or len(identity) != IDENTITY_SIZE
            or not numbers_are_good
        ):
            return None
        return cls(identity, start, reserved, active, synced is True, index_crc, closed is True, sealed)
