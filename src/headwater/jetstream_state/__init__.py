"""The state of streams and consumers, and the decisions about it: no loop, no clock. Start reading at `contents.py` for
streams, at `consumer.py` for consumers."""
