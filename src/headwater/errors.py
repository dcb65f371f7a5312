"""One exception tree: whose fault it is, which value, which limit, what to do next, and whether a retry can help.

Every exception that Headwater raises on purpose derives from `HeadwaterError`. Foreign exceptions (OSError, ssl,
msgspec) are translated where they enter, once, with the original as `__cause__`. A subclass also derives from the
builtin that a Python caller would expect (ValueError, TimeoutError, ...), so that plain code works too.

This module holds no logic beyond formatting; it imports nothing of Headwater. Names of nats-py's errors work at its end.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

Fault = Literal["caller", "peer", "server", "environment"]


class HeadwaterError(Exception):
    """Root of all. `message` is the sentence, `value` what was refused, `limit` what it broke, `hint` what to do next."""

    fault: ClassVar[Fault] = "caller"
    retriable: ClassVar[bool] = False

    def __init__(self, message: str, *, value: object = None, limit: object = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.value = value
        self.limit = limit
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class ConfigError(HeadwaterError, ValueError):
    """An option or a configuration field is wrong; nothing was started."""


class SubjectError(HeadwaterError, ValueError):
    """A subject, queue group or stream name that the protocol does not allow."""


class HeaderError(HeadwaterError, ValueError):
    """A header that cannot be written, or a block that cannot be read (ADR-4).

    `key` is the header name as far as it is known, `offset` the byte in the block where reading stopped, `rule` the
    rule that was broken.
    """

    def __init__(self, message: str, *, key: str | None = None, offset: int | None = None, rule: str = "") -> None:
        super().__init__(message, value=key)
        self.key = key
        self.offset = offset
        self.rule = rule


class CloudEventError(HeadwaterError, ValueError):
    """An event, or a message that should hold one, breaks the CloudEvents specification.

    `attribute` is the context attribute, `header` the NATS header it travelled in (None in structured mode), `rule`
    the sentence of the specification in short.
    """

    def __init__(
        self,
        message: str,
        *,
        attribute: str | None = None,
        header: str | None = None,
        value: object = None,
        rule: str = "",
    ) -> None:
        super().__init__(message, value=value)
        self.attribute = attribute
        self.header = header
        self.rule = rule


class ProtocolError(HeadwaterError):
    """Bytes or an op that the protocol does not allow here; raised as one of the two subclasses."""


class LocalProtocolError(ProtocolError):
    """Our own program has done something that the protocol does not allow."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something the protocol does not allow."""

    fault = "peer"


class PayloadTooLarge(LocalProtocolError, ValueError):
    """A message above the server's `max_payload` (bytes, headers included); nothing was sent."""


class TransportError(HeadwaterError, ConnectionError):
    """The connection could not be made, or was lost."""

    fault = "environment"
    retriable = True


class ConnectionClosed(TransportError):
    """The connection is closed, by us or by the peer, and will not come back."""

    retriable = False


class TlsRefused(TransportError):
    """TLS was refused for a certificate or a setting of one side, which another attempt will not find otherwise."""

    retriable = False


class HostUnknown(TransportError):
    """A host name has no address, and had none before in this process: most likely it is mistyped."""

    retriable = False


class BufferFull(TransportError):
    """The connection is away, and the room for what is published meanwhile (`limit` bytes) is used up."""


class ServerError(HeadwaterError):
    """The server answered -ERR; `message` is its text."""

    fault = "server"


class AuthorizationError(ServerError):
    """The server refused the credentials, or the credentials do not allow the operation."""


class RequestTimeout(HeadwaterError, TimeoutError):
    """No answer in time; the message names what was asked and how long was waited."""

    fault = "environment"
    retriable = True


class NoResponders(HeadwaterError):
    """Status 503: the subject of a request (`value`) has no subscriber."""

    fault = "environment"
    retriable = True


class JetStreamError(HeadwaterError):
    """A JetStream API error: HTTP-like `code`, the server's `err_code` and its `description`."""

    fault = "server"

    def __init__(self, code: int, err_code: int, description: str, *, hint: str = "") -> None:
        super().__init__(f"{description} [{code}/{err_code}]", hint=hint)
        self.code = code
        self.err_code = err_code
        self.description = description


class IggyError(HeadwaterError):
    """A command was refused, with Iggy's own error: its `name`, and its `number` as clients of today know it."""

    fault = "peer"

    def __init__(self, name: str, number: int, why: str, *, value: object = None) -> None:
        super().__init__(f"{why} [{name} {number}]", value=value)
        self.name = name
        self.number = number


class IncompleteSend(HeadwaterError):
    """Not all messages of a send are known to be stored: `failed` are those that are not, `committed` is where the batches
    before them went, `cause` what ended it. Unless that is a refusal, some of `failed` may be stored nevertheless."""

    fault = "peer"

    def __init__(self, cause: Exception, failed: Sequence[Any], committed: Sequence[Any]) -> None:
        super().__init__(f"{len(failed)} messages were not sent: {cause}")
        self.cause = cause
        self.failed = list(failed)
        self.committed = list(committed)


class StorageError(HeadwaterError):
    """The durable log cannot do what was asked; nothing that was acknowledged is affected."""

    fault = "environment"


class WriteFailed(StorageError):
    """A write or an fsync failed. The log is read-only from here on: after a failed fsync the kernel may have dropped
    the pages, and a later success would prove nothing."""


class DiskFull(StorageError):
    """No room for the batch. Nothing of it is visible; the same append may succeed when space returns."""

    retriable = True


class CorruptLog(StorageError):
    """A batch fails its checksum or its layout; `value` is the half-open offset range that cannot be served."""


class DataLossError(HeadwaterError):
    """A range of a stream that a reader was promised is no longer there (aged out, purged, or stream made anew)."""

    fault = "environment"


class EnvironmentProblem(HeadwaterError):
    """Something that the machine lacks (Java, an extra, a free port); the hint names the ways out."""

    fault = "environment"


def open_failure(path: object, error: Exception) -> str:
    """Why a file cannot be opened, as nats-server says it: scripts look for "no such file or directory"."""
    reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "it is no text"
    return f"open {path}: {reason}"


NATS_PY = {
    "Error": "HeadwaterError",
    "TimeoutError": "RequestTimeout",
    "FlushTimeoutError": "RequestTimeout",
    "DrainTimeoutError": "RequestTimeout",
    "NoRespondersError": "NoResponders",
    "NoStreamResponseError": "NoResponders",
    "OutboundBufferLimitError": "BufferFull",
    "ConnectionClosedError": "ConnectionClosed",
    "ConnectionDrainingError": "ConnectionClosed",
    "BadSubjectError": "SubjectError",
    "InvalidKeyError": "SubjectError",
    "InvalidBucketNameError": "SubjectError",
    "InvalidObjectNameError": "SubjectError",
    "KeyHistoryTooLargeError": "SubjectError",
    "BadHeaderError": "HeaderError",
    "NoServersError": "TransportError",
    "SecureConnFailedError": "TransportError",
    "SecureConnWantedError": "ConfigError",
    "InvalidUserCredentialsError": "ConfigError",
    "MaxPayloadError": "PayloadTooLarge",
    "APIError": "JetStreamError",
    "DigestMismatchError": "DataLossError",
}
"""Errors of nats-py that are ours under another name. (docs/migration-from-nats-py.md)"""

_CODE = "JetStreamError, whose `code` is"
NATS_PY_ADVICE = {
    "StaleConnectionError": "the event `Disconnected`: the client connects again",
    "UnexpectedEOF": "the event `Disconnected`: the client connects again",
    "SecureConnRequiredError": "ServerError, with the server's text",
    "BadSubscriptionError": "nothing to catch: a subscription that has ended may be ended again",
    "SlowConsumerError": "the event `SlowConsumer`; `subscription.dropped` counts",
    "BadTimeoutError": "ConfigError, for a wait that can only be a mistake",
    "JsonParseError": "RemoteProtocolError",
    "ConnectionReconnectingError": "BufferFull: what is published meanwhile is kept",
    "InvalidCallbackTypeError": "nothing to catch: a callback may be a function or a coroutine function",
    "ServerNotInPoolError": "nothing to catch: `connect` names all servers",
    "NotJSMessageError": "AttributeError, or LocalProtocolError for a message that no consumer delivered",
    "MsgAlreadyAckdError": "nothing to catch: the program knows what it has settled",
    "ServiceUnavailableError": f"{_CODE} 503",
    "NotFoundError": f"{_CODE} 404",
    "BadRequestError": f"{_CODE} 400",
    "ConsumerInvalidResetError": f"{_CODE} 400",
    "TooManyStalledMsgsError": "nothing to catch: `publisher.publish` waits while its window is full",
    "FetchTimeoutError": "nothing to catch: `fetch` returns what has come in time, perhaps nothing",
    "ConsumerSequenceMismatchError": "nothing to catch: an ordered consumer starts anew where it was",
    "BucketNotFoundError": f"{_CODE} 404",
    "BadBucketError": f"{_CODE} 404",
    "KeyValueError": "JetStreamError",
    "KeyNotFoundError": "headwater.client.key_value.KeyNotFound",
    "KeyDeletedError": "headwater.client.key_value.KeyNotFound",
    "KeyWrongLastSequenceError": "headwater.client.key_value.KeyExists",
    "NoKeysError": "nothing to catch: `keys()` is empty then",
    "BadObjectMetaError": "TypeError and SubjectError",
    "LinkIsABucketError": "JetStreamError",
    "ObjectNotFoundError": "headwater.client.object_store.ObjectNotFound",
    "ObjectDeletedError": "headwater.client.object_store.ObjectNotFound",
    "ObjectAlreadyExists": "JetStreamError",
    "KeyValueLimitMarkerTTLNotSupportedError": "JetStreamError, with the server's text",
}
"""Those without a class of their own here, and what to catch instead."""


if not TYPE_CHECKING:  # new programs use our names

    def __getattr__(name: str) -> object:
        if name in NATS_PY:
            return globals()[NATS_PY[name]]
        if name in NATS_PY_ADVICE:  # not AttributeError: `from ... import` would drop the text
            raise ImportError(f"headwater.errors has no {name!r}; nats-py's {name!r} is here: {NATS_PY_ADVICE[name]}")
        raise AttributeError(f"module 'headwater.errors' has no attribute {name!r}")
