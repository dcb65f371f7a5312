"""The state of streams and consumers and the decisions based on it, without event loop or clock. Start reading at
`contents.py` for streams, at `consumer.py` for consumers."""
