"""Which line of a configuration file an error is about that shows only when the options are made.

Options know their names and values, and nothing of files. The place is that of a setting with the value which the error
refuses, or with the limit that it breaks; a wrong place would mislead, so there is none where several could be meant.
"""

from collections.abc import Iterator

from headwater.errors import ConfigError
from headwater.server.config.document import Map, Place, Value


def place_of(settings: Map, error: ConfigError) -> Place | None:
    """The place of the setting that `error` is about: the last one of this value whose name the message has, else the only
    one of this value. None for an error that names its place already, or whose value the file does not have."""
    for refused in (error.value, error.limit):
        if refused is None or isinstance(refused, bool):
            continue
        found = [
            (name, place)
            for name, value, place in _scalars(settings)
            if value == refused and not isinstance(value, bool)
        ]
        named = [place for name, place in found if name.lower() in error.message.lower()]
        if named:
            return named[-1]
        if len(found) == 1:
            return found[0][1]
    return None


def _scalars(value: Value, name: str = "") -> Iterator[tuple[str, Value, Place]]:
    """Each value that is neither block nor list, under the name of the setting it belongs to."""
    if isinstance(value, dict):
        inner = [(name, setting) for name, setting in value.items()]
    elif isinstance(value, list):
        inner = [(name, setting) for setting in value]
    else:
        return
    for own, setting in inner:
        if isinstance(setting.value, dict | list):
            yield from _scalars(setting.value, own)
        else:
            yield own, setting.value, setting.place
