"""The compressor: cramjam, from the extra `compression`. Every Snappy block is a valid S2 block, so nats-server reads
them.

It is imported on first use. Reading never needs it: `s2_block.py` decodes these blocks too, at a tenth of the speed, so
a store or a backup that was compressed elsewhere opens without it.
"""

from collections.abc import Callable

from headwater.compression.s2_block import decode_block

Compress = Callable[[bytes], bytes]
Decompress = Callable[[bytes, int], bytes]

HINT = "install headwater[compression], or the package cramjam by itself"


def compressor() -> Compress | None:
    """A function that compresses content into a Snappy block; None when cramjam is not installed."""
    try:
        from cramjam import snappy
    except ImportError:
        return None
    return lambda content: bytes(snappy.compress_raw(content))


def decompressor() -> Decompress:
    """A function `(block, largest) -> content` for blocks that `compressor` made; the content has at most `largest`
    bytes. It raises RemoteProtocolError for a damaged block.
    """
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
        return decode_block(block, largest)  # it also decodes S2's op, and raises nats-server's error text

    return decompress
