"""What streams and consumers hold, and what is decided about it: no loop, no clock. Start reading at `contents.py` for
streams, at `consumer.py` for consumers."""
