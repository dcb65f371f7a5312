"""S2 and Snappy blocks: compressed by a library if it is installed, decompressed with or without it; CRC32C. No I/O."""
