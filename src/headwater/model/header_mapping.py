"""The mapping between NATS headers, Iggy's typed headers and CloudEvents attributes.

`MAPPING` is the table, `LOSSES` lists what is lost, `nats_to_typed` and `typed_to_nats` convert; the CloudEvents side
is `headwater.cloudevents.typed_mapping`, because it needs that binding's percent-encoding. docs/header-mapping.md is
generated from here.

A NATS header is text under a name, so it becomes a string under the same key. A typed header becomes readable text, and
where the text alone is ambiguous, a line of the marker header gives its type:

    key_3: 123456                 Iggy-Typed: key_3 uint64
    key%201: value1               Iggy-Typed: key%201 string escaped
    blob: AP8B                    Iggy-Typed: blob raw base64

So a string under a plain key, the usual case, needs no marker, and the reverse conversion restores kind, key and bytes.
A marker line that does not fit its header is ignored; both are then ordinary text. No value is truncated: one that does
not fit into 1..255 bytes is left out and reported.
"""

import base64
import binascii
import math
import re
from collections import Counter
from typing import Final, NamedTuple

from headwater.errors import HeaderError
from headwater.model.headers import Headers
from headwater.model.typed_header import LONGEST, HeaderKey, HeaderKind, HeaderValue
from headwater.model.typed_headers import TypedHeaders

MARKER: Final = "Iggy-Typed"
ESCAPED: Final = "escaped"  # the name is the percent-encoded key
BASE64: Final = "base64"  # the value is the base64 of the bytes
EMPTY: Final = HeaderValue.from_raw(b"\0")  # the empty text, which Iggy has no value for

_NAME: Final = re.compile(rb"[!-9;-~]+")
_UNSAFE: Final = re.compile(rb"[^!-$&-9;-~]")  # what is escaped in a name: no ADR-4 name character, or the percent sign
_TRIPLET: Final = re.compile(rb"%([0-9A-F]{2})")
_REPEATED: Final = re.compile(r"(.+)#([2-9]|[1-9][0-9]+)", re.DOTALL)
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")


class Row(NamedTuple):
    """One line of the table: the same thing on each face."""

    thing: str
    nats: str
    iggy: str
    cloudevents: str


MAPPING: Final = (
    Row("text under a name", "`name: text`", "string key `name`, kind string", "-"),
    Row("further values of a name", "`name: text` again", "string keys `name#2`, `name#3` ...", "-"),
    Row("empty text", "`name:`", "kind raw, one zero byte", "no such attribute: a String is not empty"),
    Row("key that is no header name", f"percent-encoded name, marked `{ESCAPED}`", "string key, any UTF-8", "-"),
    Row("typed key (apache-iggy 0.7)", "as above; the marker line names the key's kind", "key of any kind", "-"),
    Row("attribute name", "`ce-name`", "string key `ce-name`", "`name`"),
    Row(
        "String, URI, URI-reference, Timestamp",
        "`ce-name: percent-encoded`",
        "kind string, percent-encoded",
        "the text",
    ),
    Row("Boolean", "`true` or `false`, marked `bool`", "kind bool", "Boolean"),
    Row("Integer", "decimal, marked `int32`", "kind int32", "Integer"),
    Row("Binary", f"base64, marked `raw {BASE64}`", "kind raw", "Binary"),
    Row(
        "other integers",
        "decimal, marked `int8` ... `uint128`",
        "kind int8 ... uint128",
        "read as Integer if it fits, else String",
    ),
    Row("floating point", "shortest decimal, marked `float32` or `float64`", "kind float32, float64", "read as String"),
    Row(
        "bytes that are not what their kind says", f"base64, marked `<kind> {BASE64}`", "as they are", "read as Binary"
    ),
    Row("data", "payload", "payload", "data"),
)

LOSSES: Final = (
    ("NATS to Iggy", "a name or a value above 255 bytes", "left out, and named in the header `Nats-Header-Error`"),
    ("NATS to Iggy", "a value that is not UTF-8", "kind raw with the same bytes; base64 on the way back, marked"),
    ("NATS to Iggy", "an empty header set, the status line", "a message without headers; a status is no header"),
    ("NATS to Iggy", "order of different names", "kept here; Iggy's SDKs keep headers in a hash map"),
    ("NATS to Iggy", "a name ending in `#2` beside the name without it", "comes back as a second value of that name"),
    ("NATS to Iggy", "a NATS header called `Iggy-Typed`", "taken for a marker where it fits the header that it names"),
    (
        "NATS to Iggy",
        "more bytes of values than Iggy takes (100,000 a message)",
        "an Iggy client refuses to send it back",
    ),
    ("Iggy to NATS", "a header `Iggy-Message-Id`", "taken for the message's id; left out of a message that has one"),
    ("Iggy to NATS", "nothing else", "kinds, keys, bytes come back, by the marker lines"),
    ("CloudEvents to Iggy", "an attribute above 255 bytes once encoded", "left out, and reported"),
    (
        "CloudEvents to Iggy",
        "the difference of String, URI and Timestamp",
        "all are strings; names tell them apart, as over NATS",
    ),
    ("CloudEvents to Iggy", "a Binary of one zero byte", "comes back as the empty String"),
    ("Iggy to CloudEvents", "kinds that CloudEvents has no type for", "become Strings of their decimal text"),
)


class Loss(NamedTuple):
    """A header that could not be carried over, and why."""

    name: str
    reason: str


def nats_to_typed(headers: Headers) -> tuple[TypedHeaders, list[Loss]]:
    """The typed headers for NATS headers, and what had to be left out. Never raises."""
    typed, losses = TypedHeaders(), []
    marks = _marks(headers)
    used: dict[str, int] = {}
    for name, text in headers.multi_items():
        if name == MARKER:
            if _split_mark(text)[0] not in marks:
                losses += _put(typed, name, text, used)
            continue
        restored = _restored(name, text, marks.get(name))
        if restored is not None and restored[0] not in typed:
            typed[restored[0]] = restored[1]
        else:
            losses += _put(typed, name, text, used)
    return typed, losses


def typed_to_nats(typed: TypedHeaders) -> Headers:
    """The NATS headers for typed headers, with marker lines where the text alone would lose the type. Never raises."""
    headers, marks = Headers(), []
    taken = {MARKER, *(str(key) for key in typed if key.kind is HeaderKind.STRING and _NAME.fullmatch(key.raw))}
    for key, value in typed.items():
        text, kind_marks = _written(value)
        repeated = None if kind_marks else _repetition(key, typed)
        if repeated is not None:
            headers.append(repeated, text)
            continue
        name, key_marks = _name_for(key, taken)
        if kind_marks or key_marks:
            marks.append(" ".join((name, *(kind_marks or ["string"]), *key_marks)))
        headers.append(name, text)
    for mark in marks:
        headers.append(MARKER, mark)
    return headers


# ── text in NATS to a typed header ──


def _put(typed: TypedHeaders, name: str, text: str, used: dict[str, int]) -> list[Loss]:
    """Ordinary text under its name; the second of a name goes under `name#2`."""
    number = used.get(name, 0) + 1
    key = name if number == 1 else f"{name}#{number}"
    raw = text.encode("utf-8", "surrogateescape")
    while key in typed:  # another header has literally this name
        number += 1
        key = f"{name}#{number}"
    if len(key) > LONGEST:
        return [Loss(name, f"the name has {len(key)} bytes, Iggy takes {LONGEST}")]
    if len(raw) > LONGEST:
        return [Loss(name, f"the value has {len(raw)} bytes, Iggy takes {LONGEST}")]
    used[name] = number
    typed[key] = EMPTY if not raw else _text_value(raw)
    return []


def _text_value(raw: bytes) -> HeaderValue:
    try:
        return HeaderValue(HeaderKind.STRING, raw)
    except HeaderError:
        return HeaderValue.from_raw(raw)


def _marks(headers: Headers) -> dict[str, list[str]]:
    """Marker words by header name, for those names that have one line and one mark, which fits it."""
    marks = [_split_mark(line) for line in headers.get_all(MARKER)]
    if not marks:
        return {}
    lines = Counter(name for name, _ in headers.multi_items())
    marked = Counter(name for name, _ in marks)
    return {
        name: words
        for name, words in marks
        if name != MARKER
        and lines[name] == marked[name] == 1
        and _restored(name, headers.first(name), words) is not None
    }


def _split_mark(line: str) -> tuple[str, list[str]]:
    name, *words = line.split(" ")
    return name, words


def _restored(name: str, text: str, words: list[str] | None) -> tuple[HeaderKey, HeaderValue] | None:
    """The typed header that was written so; None when nothing was, or the marker does not fit."""
    if words is None:
        return None
    try:
        kind = HeaderKind.of_json_name(words[0] if words else None)
        options = words[1:]
        in_base64 = BASE64 in options[:1]
        key = _restored_key(name, options[in_base64:])
        value = _restored_value(kind, text, in_base64)
    except (HeaderError, ValueError, OverflowError, binascii.Error):  # overflow: `999 int8` in a made-up marker
        return None
    return None if key is None or value is None else (key, value)


def _restored_key(name: str, options: list[str]) -> HeaderKey | None:
    if not options:
        return HeaderKey(name)
    if options[0] != ESCAPED or len(options) > 2:
        return None
    raw = _TRIPLET.sub(lambda match: bytes((int(match[1], 16),)), name.rstrip("%").encode())
    return HeaderKey.of_wire(HeaderKind.of_json_name(options[1] if len(options) == 2 else "string"), raw)


def _restored_value(kind: HeaderKind, text: str, in_base64: bool) -> HeaderValue | None:
    if in_base64:
        raw = base64.b64decode(text, validate=True)
        return HeaderValue.of_wire(kind, raw) if base64.b64encode(raw).decode() == text else None
    value: HeaderValue | None = None
    if kind is HeaderKind.STRING:
        value = HeaderValue.from_str(text) if text else EMPTY
    elif kind is HeaderKind.BOOL and text in ("true", "false"):
        value = HeaderValue.from_bool(text == "true")
    elif kind in (HeaderKind.FLOAT32, HeaderKind.FLOAT64):
        value = (
            HeaderValue.from_float32(float(text))
            if kind is HeaderKind.FLOAT32
            else HeaderValue.from_float64(float(text))
        )
    elif kind.name.startswith(("INT", "UINT")) and kind.width is not None and _INTEGER.fullmatch(text):
        value = HeaderValue(kind, int(text).to_bytes(kind.width, "little", signed=kind.name.startswith("INT")))
    return value if value is not None and _plain_text(value) == text else None


# ── a typed header to text in NATS ──


def _written(value: HeaderValue) -> tuple[str, list[str]]:
    """(text, marker words); no words for a string that reads as it is, and for the empty text."""
    text = _plain_text(value)
    if text is None:
        return base64.b64encode(value.raw).decode(), [value.kind.json_name, BASE64]
    return text, [] if value.kind is HeaderKind.STRING or value == EMPTY else [value.kind.json_name]


def _plain_text(value: HeaderValue) -> str | None:
    """The value as text that reads back to the same bytes, else None."""
    try:
        python = value.python
    except HeaderError:
        return None
    if isinstance(python, bool):
        return "true" if python else "false"
    if value == EMPTY:
        return ""
    if isinstance(python, bytes) or (isinstance(python, float) and math.isnan(python)):
        return None
    if isinstance(python, str):
        fits = not ("\r" in python or "\n" in python) and python == python.strip(" \t")
        return python if fits else None
    return repr(python)


def _name_for(key: HeaderKey, taken: set[str]) -> tuple[str, list[str]]:
    """(header name, marker words about the key). A key that is a name keeps it; another gets one that is free."""
    if key.kind is HeaderKind.STRING and _NAME.fullmatch(key.raw) and str(key) != MARKER:
        return str(key), []
    kind = [] if key.kind is HeaderKind.STRING else [key.kind.json_name]
    name = _UNSAFE.sub(lambda match: b"%%%02X" % match[0][0], key.raw).decode()
    while name in taken:
        name += "%"  # begins no triplet, so it is not read as part of the key
    taken.add(name)
    return name, [ESCAPED, *kind]


def _repetition(key: HeaderKey, typed: TypedHeaders) -> str | None:
    """The name of which this key, `name#n`, holds a further value; None when it stands for itself."""
    match = _REPEATED.fullmatch(str(key)) if key.kind is HeaderKind.STRING else None
    if match is None or not _NAME.fullmatch(match[1].encode()) or match[1] == MARKER:
        return None
    chain = [match[1], *(f"{match[1]}#{number}" for number in range(2, min(int(match[2]), len(typed) + 1)))]
    order = {str(name): at for at, name in enumerate(typed) if name.kind is HeaderKind.STRING}
    places = [order.get(name, -1) for name in (*chain, str(key))]
    plain = all(name in typed and not _written(typed[name])[1] for name in chain)
    return (
        match[1] if plain and places == sorted(places) and places[0] >= 0 and int(match[2]) == len(chain) + 1 else None
    )
