"""Reads of a stream without a consumer: ranges as stored batches, for readers that decode the log's own bytes, and direct
gets."""
