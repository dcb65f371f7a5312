"""Why a stream does not store a traced message, in the words of nats-server's reports (ADR-41).

Most refusals are reported with their number, and some in other words than those of the answer.
"""

import json
import re

from headwater.errors import JetStreamError, StorageError
from headwater.model.header_block import lookup

DUPLICATE = "msgid is duplicate"
_WRONG_SEQUENCE, _WRONG_LAST_ID = 10071, 10070
_TOO_LARGE = 10054, 10097
_OTHER_TEXTS = {10060: "", 10111: "", 10166: "message TTL disabled", 10201: DUPLICATE}  # "": the same, no number
_OF_SUBJECT = b"Nats-Expected-Last-Subject-Sequence"


def reason_of(error: JetStreamError | StorageError, header_block: bytes, *, in_batch: bool = False) -> str:
    """Why a message is not stored, in nats-server's words."""
    if not isinstance(error, JetStreamError):
        return str(error)
    description = error.description
    if error.err_code == _WRONG_LAST_ID:
        expected = lookup(header_block, b"Nats-Expected-Last-Msg-Id") or b""
        stored = description.partition(": ")[2]
        return f"last msgid mismatch: {_quoted(expected.decode('utf-8', 'replace'))} vs {_quoted(stored)}"
    actual = re.search(r"\d+$", description)
    of_subject = lookup(header_block, _OF_SUBJECT)
    expected = of_subject or lookup(header_block, b"Nats-Expected-Last-Sequence") or b""
    if error.err_code == _WRONG_SEQUENCE and actual and expected:
        what = "last sequence by subject" if of_subject else "last sequence"
        return f"{what} mismatch: {expected.decode('ascii', 'replace')} vs {actual[0]}"
    if error.err_code in _TOO_LARGE and not in_batch:
        return "maximum payload exceeded"
    if error.err_code in _OTHER_TEXTS:
        return _OTHER_TEXTS[error.err_code] or description
    return f"{description} ({error.err_code})" if error.err_code else description


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
