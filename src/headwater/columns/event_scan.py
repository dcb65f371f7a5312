# cython: boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Check and skip parts of an event in place: text, a JSON value, a media type, a timestamp.

Every function here is *sound* but not complete: a positive result is one that `headwater.cloudevents` would give as
well; a negative one (False, -1, `NO_INSTANT`) leaves the row to the reference decoder. So the rules are defined in one
place, and this module only speeds up the common case. JSON follows RFC 8259 exactly, nested up to `DEEPEST`; a lone
surrogate in an escape is left to the reference.

`end` bounds every look-ahead; callers ensure 0 <= start <= end <= len(buffer).
"""

import cython

DEEPEST = 64  # levels of JSON; one bit for each fits a machine word
NO_INSTANT: int = -(1 << 62)  # far outside the years of a timestamp
MICROS = 1_000_000


def sequence_length(buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
    """Length of the UTF-8 sequence at `at` (1 to 4 bytes), or 0 when it is malformed."""
    first: cython.int = buffer[at]
    second: cython.int
    if first < 0x80:
        return 1
    if first < 0xC2 or first > 0xF4 or end - at < 2:
        return 0
    second = buffer[at + 1]
    if second & 0xC0 != 0x80:
        return 0
    if first < 0xE0:
        return 2
    if end - at < 3 or buffer[at + 2] & 0xC0 != 0x80:
        return 0
    if first < 0xF0:
        # Overlong forms and surrogates.
        return 0 if (first == 0xE0 and second < 0xA0) or (first == 0xED and second > 0x9F) else 3
    if end - at < 4 or buffer[at + 3] & 0xC0 != 0x80:
        return 0
    # Overlong forms, and code points above U+10FFFF.
    return 0 if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F) else 4


def is_utf8(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether `buffer[start:end]` is UTF-8."""
    at: cython.Py_ssize_t = start
    length: cython.int
    while at < end:
        if buffer[at] < 0x80:
            at += 1
            continue
        length = sequence_length(buffer, at, end)
        if length == 0:
            return False
        at += length
    return True


def is_string(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether `buffer[start:end]` is a CloudEvents String: UTF-8 without control characters and noncharacters."""
    at: cython.Py_ssize_t = start
    length: cython.int
    while at < end:
        if 0x20 <= buffer[at] < 0x7F:
            at += 1
            continue
        length = sequence_length(buffer, at, end)
        if length < 2:
            return False
        if length == 2 and buffer[at] == 0xC2 and buffer[at + 1] < 0xA0:  # C1
            return False
        if length == 3 and buffer[at] == 0xEF:
            if buffer[at + 1] == 0xBF and buffer[at + 2] >= 0xBE:  # U+FFFE, U+FFFF
                return False
            if buffer[at + 1] == 0xB7 and 0x90 <= buffer[at + 2] <= 0xAF:  # U+FDD0 to U+FDEF
                return False
        if length == 4 and buffer[at + 1] & 0x0F == 0x0F and buffer[at + 2] == 0xBF and buffer[at + 3] >= 0xBE:
            return False
        at += length
    return True


def folded_equals(buffer: bytearray, start: cython.Py_ssize_t, lower: bytes) -> cython.bint:
    """Whether the bytes from `start` on equal `lower` (ASCII without upper case), ignoring case. The caller ensures that
    at least `len(lower)` bytes are present.
    """
    at: cython.Py_ssize_t
    byte: cython.int
    for at in range(len(lower)):
        byte = buffer[start + at]
        if 65 <= byte <= 90:
            byte += 32
        if byte != lower[at]:
            return False
    return True


def is_json_type(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether the media type in `buffer[start:end]` is `*/json` or `*/*+json`, ignoring parameters."""
    at: cython.Py_ssize_t = start
    stop: cython.Py_ssize_t
    slash: cython.Py_ssize_t = -1
    while at < end and buffer[at] != 59:
        if slash < 0 and buffer[at] == 47:
            slash = at
        at += 1
    stop = at
    while stop > start and (buffer[stop - 1] == 32 or buffer[stop - 1] == 9):
        stop -= 1
    if slash < 0 or stop - slash < 5 or not folded_equals(buffer, stop - 4, b"json"):
        return False
    return stop - slash == 5 or buffer[stop - 5] == 43


def skip_blank(buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The first position from `at` on that is not JSON white space, or `end`."""
    while at < end and (buffer[at] == 32 or buffer[at] == 10 or buffer[at] == 13 or buffer[at] == 9):
        at += 1
    return at


def skip_value(buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position after the JSON value that begins at `at`, or -1. The caller validates bytes above 0x7F."""
    depth: cython.int = 0
    objects: cython.ulonglong = 0  # bit n: level n is an object, not an array
    byte: cython.int
    while at < end:
        byte = buffer[at]
        if byte == 123 or byte == 91:
            at = skip_blank(buffer, at + 1, end)
            if at >= end or depth == DEEPEST:
                return -1
            if buffer[at] != byte + 2:
                objects = (objects << 1) | (byte == 123)
                depth += 1
                if byte == 123:
                    at = skip_key(buffer, at, end)
                    if at < 0:
                        return -1
                continue
            at += 1  # an empty object or array
        elif byte == 34:
            at = skip_string(buffer, at, end)
        elif byte == 116:
            at = skip_literal(buffer, at, end, b"true")
        elif byte == 102:
            at = skip_literal(buffer, at, end, b"false")
        elif byte == 110:
            at = skip_literal(buffer, at, end, b"null")
        else:
            at = skip_number(buffer, at, end)
        if at < 0:
            return -1
        while depth > 0:  # after a value: close what ends here, up to the next comma
            at = skip_blank(buffer, at, end)
            if at >= end:
                return -1
            byte = buffer[at]
            if byte == 44:
                at = skip_blank(buffer, at + 1, end)
                if objects & 1:
                    at = skip_key(buffer, at, end)
                    if at < 0:
                        return -1
                break
            if byte != (125 if objects & 1 else 93):
                return -1
            objects >>= 1
            depth -= 1
            at += 1
        else:
            return at
    return -1


def skip_key(buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position of the value that follows the name at `at`, or -1."""
    if at >= end or buffer[at] != 34:
        return -1
    at = skip_string(buffer, at, end)
    if at < 0:
        return -1
    at = skip_blank(buffer, at, end)
    if at >= end or buffer[at] != 58:
        return -1
    return skip_blank(buffer, at + 1, end)


def skip_string(buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position after the string whose opening quote is at `at`, or -1."""
    byte: cython.int
    at += 1
    while at < end:
        byte = buffer[at]
        if byte == 34:
            return at + 1
        if byte < 32:
            return -1
        if byte == 92:
            at = skip_escape(buffer, at + 1, end)
            if at < 0:
                return -1
        else:
            at += 1
    return -1


def skip_escape(buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position after the escape whose letter is at `at`, or -1."""
    byte: cython.int
    code: cython.int
    if at >= end:
        return -1
    byte = buffer[at]
    if byte != 117:
        if byte in (34, 92, 47, 98, 102, 110, 114, 116):
            return at + 1
        return -1
    code = hex_quad(buffer, at + 1, end)
    if code < 0 or 0xDC00 <= code < 0xE000:
        return -1
    if 0xD800 <= code < 0xDC00:
        if end - at < 7 or buffer[at + 5] != 92 or buffer[at + 6] != 117:
            return -1
        code = hex_quad(buffer, at + 7, end)
        return at + 11 if 0xDC00 <= code < 0xE000 else -1
    return at + 5


def hex_quad(buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
    """The value of the four hexadecimal digits at `at`, or -1."""
    code: cython.int = 0
    digit: cython.int
    index: cython.Py_ssize_t
    if end - at < 4:
        return -1
    for index in range(at, at + 4):
        digit = hex_digit(buffer[index])
        if digit < 0:
            return -1
        code = code * 16 + digit
    return code


def hex_digit(byte: cython.int) -> cython.int:
    """0 to 15, or -1."""
    if 48 <= byte <= 57:
        return byte - 48
    if 65 <= byte <= 70:
        return byte - 55
    if 97 <= byte <= 102:
        return byte - 87
    return -1


def skip_literal(buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t, literal: bytes) -> cython.Py_ssize_t:
    """The position after `literal`, or -1 when `at` holds something else."""
    index: cython.Py_ssize_t
    size: cython.Py_ssize_t = len(literal)
    if end - at < size:
        return -1
    for index in range(size):
        if buffer[at + index] != literal[index]:
            return -1
    return at + size


def skip_number(buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position after the number at `at`, or -1."""
    if at < end and buffer[at] == 45:
        at += 1
    if at < end and buffer[at] == 48:
        at += 1
    else:
        at = skip_digits(buffer, at, end)
    if at > 0 and at < end and buffer[at] == 46:
        at = skip_digits(buffer, at + 1, end)
    if at > 0 and at < end and (buffer[at] == 101 or buffer[at] == 69):
        at += 1
        if at < end and (buffer[at] == 43 or buffer[at] == 45):
            at += 1
        at = skip_digits(buffer, at, end)
    return at


def skip_digits(buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position after one or more digits, or -1."""
    start: cython.Py_ssize_t = at
    while at < end and 48 <= buffer[at] <= 57:
        at += 1
    return at if at > start else -1


def timestamp_micros(buffer: bytearray, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.longlong:
    """Microseconds since 1970 of the RFC 3339 timestamp in `buffer[start:end]`, with finer digits cut off; or
    `NO_INSTANT`. Leap seconds and the first and last year of a datetime are left to the reference.
    """
    year: cython.int
    month: cython.int
    day: cython.int
    hour: cython.int
    minute: cython.int
    second: cython.int
    zone: cython.int
    at: cython.Py_ssize_t
    fraction: cython.longlong = 0
    unit: cython.longlong = MICROS
    if end - start < 20 or two_digits(buffer, start) < 0 or two_digits(buffer, start + 2) < 0:
        return NO_INSTANT
    year = two_digits(buffer, start) * 100 + two_digits(buffer, start + 2)
    month = two_digits(buffer, start + 5)
    day = two_digits(buffer, start + 8)
    hour = two_digits(buffer, start + 11)
    minute = two_digits(buffer, start + 14)
    second = two_digits(buffer, start + 17)
    if buffer[start + 4] != 45 or buffer[start + 7] != 45 or buffer[start + 13] != 58 or buffer[start + 16] != 58:
        return NO_INSTANT
    if buffer[start + 10] != 84 and buffer[start + 10] != 116:
        return NO_INSTANT
    if year < 2 or year > 9998 or month < 1 or month > 12 or day < 1 or day > days_in_month(year, month):
        return NO_INSTANT
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return NO_INSTANT
    at = start + 19
    if buffer[at] == 46:
        at += 1
        if at >= end or not 48 <= buffer[at] <= 57:
            return NO_INSTANT
        while at < end and 48 <= buffer[at] <= 57:
            unit //= 10
            fraction += unit * (buffer[at] - 48)
            at += 1
    zone = zone_minutes(buffer, at, end)
    if zone < -1439:
        return NO_INSTANT
    return (
        days_since_1970(year, month, day) * 86_400 + hour * 3_600 + (minute - zone) * 60 + second
    ) * MICROS + fraction


def zone_minutes(buffer: bytearray, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
    """The zone offset in `buffer[at:end]` in minutes east of Greenwich, or -9999."""
    hours: cython.int
    minutes: cython.int
    if end - at == 1:
        return 0 if buffer[at] == 90 or buffer[at] == 122 else -9999
    if end - at != 6 or (buffer[at] != 43 and buffer[at] != 45) or buffer[at + 3] != 58:
        return -9999
    hours = two_digits(buffer, at + 1)
    minutes = two_digits(buffer, at + 4)
    if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return -9999
    return hours * 60 + minutes if buffer[at] == 43 else -(hours * 60 + minutes)


def two_digits(buffer: bytearray, at: cython.Py_ssize_t) -> cython.int:
    """The value of the two digits at `at`, or -1."""
    tens: cython.int = buffer[at] - 48
    ones: cython.int = buffer[at + 1] - 48
    if tens < 0 or tens > 9 or ones < 0 or ones > 9:
        return -1
    return tens * 10 + ones


def days_in_month(year: cython.int, month: cython.int) -> cython.int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


def days_since_1970(year: cython.int, month: cython.int, day: cython.int) -> cython.longlong:
    """Days in the Gregorian calendar, counted in years that begin in March, so that leap days come last. Needs year >= 1."""
    shifted: cython.longlong = year - 1 if month <= 2 else year
    month_from_march: cython.longlong = month + 9 if month <= 2 else month - 3
    leap_days: cython.longlong = shifted // 4 - shifted // 100 + shifted // 400
    return shifted * 365 + leap_days + (153 * month_from_march + 2) // 5 + day - 1 - 719_468
