"""The compressor: cramjam, the extra `compression`. Every Snappy block is one of S2, so nats-server reads what it makes.

It is imported where it is first used. Reading never needs it: `s2_block.py` decodes what it makes too, at a tenth of its
speed, so a store or a backup that was compressed elsewhere opens without it.
"""

from collections.abc import Callable

from headwater.compression.s2_block import decode_block

Compress = Callable[[bytes], bytes]
Decompress = Callable[[bytes, int], bytes]

HINT = "install headwater[compression], or the package cramjam by itself"


def compressor() -> Compress | None:
    """What makes a Snappy block of content; None where cramjam is not installed."""
    try:
        from cramjam import snappy
    except ImportError:
        return None
    return lambda content: bytes(snappy.compress_raw(content))


def decompressor() -> Decompress:
    """(block, largest) -> content of at most `largest` bytes, for blocks that `compressor` made. Raises RemoteProtocolError
    for a block that is damaged."""
    try:
        from cramjam import DecompressionError, snappy
    except ImportError:
        return decode_block

    def decompress(block: bytes, largest: int) -> bytes:
        try:
            if snappy.decompress_raw_len(block) <= largest:
                return bytes(snappy.decompress_raw(block))
        except DecompressionError:
            pass
        return decode_block(block, largest)  # it has one more op, and says in nats-server's words what is wrong

    return decompress
