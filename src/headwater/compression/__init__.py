"""Blocks of S2 and Snappy: compressed by a library where it is installed, decompressed with or without it. No I/O."""
