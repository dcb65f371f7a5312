"""Fields: the names a block may hold, how each value is read, and how settings without effect are reported.

A block is a table of fields; the documentation (docs/config.md) is generated from the same tables. A field is

    done       read into an option
    ignored    nats-server has it, and it means nothing here: a warning, unless it is switched off
    refused    nats-server has it, Headwater does not, and ignoring it would be wrong: an error, unless it is off

`Reading.block` walks a block of the file by such a table. It gathers everything that is wrong instead of stopping at the
first; a name that no table knows is an error, except where it was used as a variable.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from headwater.errors import ConfigError
from headwater.model.nkey import NkeyKind, decode_nkey
from headwater.server.config.document import Map, Place, Remark, Setting, kind
from headwater.server.config.parser import ReadFile
from headwater.server.config.places import place_of
from headwater.server.config.scalars import duration

T = TypeVar("T")

SMALL_INTEGER = (1 << 31) - 1
LONG_SECONDS = 86_400.0  # a longer time is taken for a mistake: 2m without quotes is two million


class Support(Enum):
    """How a field of nats-server is handled."""

    DONE = "yes"
    IGNORED = "ignored"
    REFUSED = "refused"


Read = Callable[["Reading", Setting], Any]


class Field(NamedTuple):
    """One field: its `names`, the first of which is the usual one; the keyword `to` that its value goes by; the
    values that ask for the `same` as what happens here anyway."""

    names: tuple[str, ...]
    meaning: str
    support: Support
    to: str = ""
    read: Read | None = None
    same: tuple[object, ...] = ()


class Block(NamedTuple):
    """The fields of one kind of block. `title` is its heading in the documentation."""

    title: str
    fields: tuple[Field, ...]

    def find(self, name: str) -> Field | None:
        """The field of this name, in any case."""
        lowered = name.lower()
        return next((field for field in self.fields if lowered in field.names), None)


def done(names: str, read: Read, meaning: str, to: str = "") -> Field:
    """A supported field; `names` are separated by spaces."""
    split = tuple(names.split())
    return Field(split, meaning, Support.DONE, to or split[0], read)


def ignored(names: str, meaning: str, same: tuple[object, ...] = ()) -> Field:
    """A field that changes nothing here; a value in `same` is what happens anyway, and gets no warning."""
    return Field(tuple(names.split()), meaning, Support.IGNORED, same=same)


def refused(names: str, meaning: str) -> Field:
    """A field that Headwater does not support."""
    return Field(tuple(names.split()), meaning, Support.REFUSED)


class Reading:
    """One walk over a document. `read_file(path)` gives the text of a file, and raises OSError."""

    def __init__(self, read_file: ReadFile) -> None:
        self.read_file = read_file
        self.errors: list[Remark] = []
        self.warnings: list[Remark] = []

    def error(self, place: Place, text: str) -> None:
        """Something is wrong at `place`."""
        self.errors.append(Remark(place, text))

    def warn(self, place: Place, text: str) -> None:
        """The setting at `place` may not have the intended effect."""
        self.warnings.append(Remark(place, text))

    def block(self, setting: Setting, block: Block) -> dict[str, Any]:
        """The values of a block, by the keywords of its fields. Raises ValueError when it is no block."""
        return self.settings(mapping(setting), block)

    def settings(self, settings: Map, block: Block) -> dict[str, Any]:
        """The values of these settings; what is wrong goes to `errors`, and its field is left out."""
        found: dict[str, Any] = {}
        for name, setting in settings.items():
            field = block.find(name)
            if field is None:
                if not setting.used:
                    self.error(setting.place, f'unknown field "{name}"{_nearest(name, block)}')
                continue
            if field.read is None:
                self._not_done(name, setting, field)
                continue
            try:
                value = field.read(self, setting)
            except ConfigError as error:  # of an options class, a complete sentence
                self.error(place_of({name: setting}, error) or setting.place, str(error))
                continue
            except ValueError as error:
                self.error(setting.place, f'"{name}" {error}')
                continue
            if field.to in found:
                self.warn(setting.place, f'"{name}" is set a second time under another name; this value is used')
            found[field.to] = value
        return found

    def elements(self, setting: Setting, read: Callable[["Reading", Setting], T]) -> list[T]:
        """A list, element by element; what is wrong with one does not hide what is wrong with the next."""
        values = []
        for element in sequence(setting):
            try:
                values.append(read(self, element))
            except ValueError as error:
                self.error(element.place, str(error))
        return values

    def file(self, setting: Setting) -> str:
        """The name of a file that can be read."""
        path = text(self, setting)
        try:
            self.read_file(path)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is no text"
            raise ValueError(f"names {path!r}: {reason}") from error
        return path

    def _not_done(self, name: str, setting: Setting, field: Field) -> None:
        if setting.value is False or setting.value in field.same:
            return
        if field.support is Support.REFUSED:
            self.error(setting.place, f'"{name}" is a field of nats-server that Headwater does not do: {field.meaning}')
        else:
            self.warn(setting.place, f'"{name}" changes nothing here: {field.meaning}')


def _nearest(name: str, block: Block) -> str:
    from difflib import get_close_matches

    names = [known for field in block.fields for known in field.names]
    near = get_close_matches(name.lower(), names, n=5, cutoff=0.75)
    near.sort(key=lambda known: sorted(known) != sorted(name.lower()))  # transposed letters first
    return f'; did you mean "{near[0]}"?' if near else ""


# ── readers of one value: they raise ValueError with what is wrong, without the value, which may be a secret. What the
# options' own classes raise, a ConfigError, goes through them ──


def mapping(setting: Setting) -> Map:
    """A block."""
    if isinstance(setting.value, dict):
        return setting.value
    raise ValueError(f"must be a block, not {kind(setting.value)}")


def sequence(setting: Setting) -> Sequence[Setting]:
    """A list."""
    if isinstance(setting.value, list):
        return setting.value
    raise ValueError(f"must be a list, not {kind(setting.value)}")


def text(reading: Reading, setting: Setting) -> str:
    """A string."""
    if isinstance(setting.value, str):
        return setting.value
    raise ValueError(f"must be a string, not {kind(setting.value)}")


def name(reading: Reading, setting: Setting) -> str:
    """A string without spaces: the name of a server or a cluster."""
    value = text(reading, setting)
    if " " in value:
        raise ValueError("cannot contain spaces")
    return value


def nkey(kind: NkeyKind, what: str) -> Read:
    """A reader of public keys of one kind; `what` names it in the error."""

    def read(reading: Reading, setting: Setting) -> str:
        key = text(reading, setting)
        if decode_nkey(key, kind) is None:
            raise ValueError(f"is not a valid public {what}")
        return key

    return read


def texts(reading: Reading, setting: Setting) -> tuple[str, ...]:
    """A string, or a list of them."""
    if isinstance(setting.value, str):
        return (setting.value,)
    return tuple(reading.elements(setting, text))


def strings(reading: Reading, setting: Setting) -> dict[str, str]:
    """A block of strings under any names."""
    return {key: text(reading, inner) for key, inner in mapping(setting).items()}


def switch(reading: Reading, setting: Setting) -> bool:
    """A boolean."""
    if isinstance(setting.value, bool):
        return setting.value
    raise ValueError(f"must be true or false, not {kind(setting.value)}")


def number(reading: Reading, setting: Setting) -> int:
    """A whole number; sizes are numbers too."""
    if isinstance(setting.value, int) and not isinstance(setting.value, bool):
        return setting.value
    raise ValueError(f"must be a number, not {kind(setting.value)}")


def small_number(reading: Reading, setting: Setting) -> int:
    """A number of 32 bits."""
    value = number(reading, setting)
    if value > SMALL_INTEGER:
        raise ValueError("value is too big")
    return value


def port(reading: Reading, setting: Setting) -> int:
    """A port: -1 for any free one, 0 for the default."""
    value = number(reading, setting)
    if not -1 <= value <= 65_535:
        raise ValueError("is no port: -1 takes any free one, others go up to 65535")
    return value


def time_text(reading: Reading, setting: Setting) -> float:
    """A duration in quotes, in seconds."""
    return duration(text(reading, setting))


def seconds(reading: Reading, setting: Setting) -> float:
    """A duration in quotes; or, as in old files, a number of seconds."""
    if isinstance(setting.value, str):
        return duration(setting.value)
    value = float(number(reading, setting))
    hint = f', which is {value:.0f} seconds now; write "2m", with quotes' if value >= LONG_SECONDS else ""
    reading.warn(setting.place, f"this should be converted to a duration{hint}")
    return value


def amount_of_seconds(reading: Reading, setting: Setting) -> float:
    """Seconds as a number, with or without a fraction, or a duration in quotes."""
    if isinstance(setting.value, str):
        return duration(setting.value)
    if isinstance(setting.value, float):
        return setting.value
    return float(number(reading, setting))


def storage_size(reading: Reading, setting: Setting) -> int:
    """A number, or a string such as "10G", where K, M, G and T count by 1024."""
    if not isinstance(setting.value, str):
        return number(reading, setting)
    digits, unit = setting.value[:-1], setting.value[-1:]
    if not setting.value:
        return 0
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20) or unit not in "KMGT":
        raise ValueError("must be a size: a number, or a string that ends in K, M, G or T")
    return int(digits) << 10 * ("KMGT".index(unit) + 1)


def address(reading: Reading, setting: Setting) -> tuple[str, int]:
    """`host:port` or a port; host "" for the default. An IPv6 host stands in brackets, and the whole in quotes."""
    if not isinstance(setting.value, str):
        return "", port(reading, setting)
    host, colon, digits = setting.value.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or (":" in host and not bracketed):
        raise ValueError("could not parse address: write host:port")
    if not digits.removeprefix("-").isascii() or not digits.removeprefix("-").isdigit() or len(digits) > 6:
        raise ValueError("could not parse port: write host:port")
    value = int(digits)
    if not -1 <= value <= 65_535:
        raise ValueError(f"{value} is no port")
    return host[1:-1] if bracketed else host, value
