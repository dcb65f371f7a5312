"""Query parameters, parsed as by nats-server, with its error texts."""

from headwater.errors import ConfigError

Parameters = dict[str, str]
"""Of a query, by name."""

LARGEST = (1 << 63) - 1
LARGEST_IDENTIFIER = (1 << 64) - 1

_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}


def switch(parameters: Parameters, name: str) -> bool:
    """A boolean, false when absent. Raises ConfigError."""
    text = parameters.get(name, "")
    if not text or text in _FALSE:
        return False
    if text not in _TRUE:
        raise ConfigError(
            f"Error decoding boolean for '{name}': strconv.ParseBool: parsing {_quoted(text)}: invalid syntax"
        )
    return True


def number(parameters: Parameters, name: str) -> int:
    """A whole number, 0 when absent. Raises ConfigError."""
    text = parameters.get(name, "")
    if not text:
        return 0
    digits = text[1:] if text[0] in "+-" else text
    if not (digits.isascii() and digits.isdigit()):
        raise ConfigError(f"Error decoding int for '{name}': strconv.Atoi: parsing {_quoted(text)}: invalid syntax")
    if len(digits) > 19 or int(digits) > LARGEST:
        raise ConfigError(f"Error decoding int for '{name}': strconv.Atoi: parsing {_quoted(text)}: value out of range")
    return int(text)


def identifier(parameters: Parameters, name: str) -> int:
    """A number without a sign, 0 when absent. Raises ConfigError."""
    text = parameters.get(name, "")
    if not text:
        return 0
    wrong = "" if text.isascii() and text.isdigit() else "invalid syntax"
    if not wrong and (len(text) > 20 or int(text) > LARGEST_IDENTIFIER):
        wrong = "value out of range"
    if wrong:
        raise ConfigError(f"Error decoding uint64 for '{name}': strconv.ParseUint: parsing {_quoted(text)}: {wrong}")
    return int(text)


def page(parameters: Parameters, default: int) -> tuple[int, int]:
    """`offset` and `limit`; values that are too small are corrected, as in nats-server."""
    offset, limit = number(parameters, "offset"), number(parameters, "limit")
    return max(0, offset), limit if limit > 0 else default


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
