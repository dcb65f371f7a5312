"""Integers of any length as texts. Python refuses to convert more than 4,300 digits at once, so this goes in pieces.

Refuses what `int` takes beyond digits and a sign: blanks, underscores, digits of other scripts.
"""

_PIECE = 4000  # digits
_LIMIT = 10**_PIECE


def read_number(text: str) -> int:
    """The integer in a text of any length. Raises ValueError."""
    sign, digits = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if not digits.isascii() or not digits.isdigit():
        raise ValueError(f"not an integer: {text[:40]!r}")
    value = 0
    for start in range(0, len(digits), _PIECE):
        piece = digits[start : start + _PIECE]
        value = value * 10 ** len(piece) + int(piece)
    return sign * value


def write_number(value: int) -> str:
    """The text of an integer of any length."""
    sign, value = ("-", -value) if value < 0 else ("", value)
    pieces: list[str] = []
    while value >= _LIMIT:
        value, rest = divmod(value, _LIMIT)
        pieces.append(f"{rest:0{_PIECE}d}")
    return sign + str(value) + "".join(reversed(pieces))
