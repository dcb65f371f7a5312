"""`format("iggy")`: partitions of topics as ranges of offsets, read by polls, and a sink."""
