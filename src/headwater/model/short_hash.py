"""nats-server's short names: a hash of a text as eight letters and digits.

They are in the subjects of acks (an account's), in `Nats-Stream-Source` headers (a stream's identity, the API of another
domain) and in the names of the consumers that copy a stream, so they must be the same on every server.
"""

LENGTH = 8
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def short_hash(text: str) -> str:
    """The first eight bytes of the text's SHA-256, each modulo 62 as a digit."""
    import hashlib  # here: with it comes OpenSSL's library, 4 ms of the start of a server that may need no short name

    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()[:LENGTH]
    return short_name(digest)


def short_name(numbers: bytes) -> str:
    """One digit for each byte; random bytes make a unique name."""
    return "".join(DIGITS[byte % len(DIGITS)] for byte in numbers)
