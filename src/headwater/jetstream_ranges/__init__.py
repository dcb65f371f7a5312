"""Ranges of a stream as stored batches, for readers that decode the log's own bytes."""
