"""`format("iggy")`: a source that reads ranges of offsets from topic partitions by polling, and a sink."""
