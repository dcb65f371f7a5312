"""The durable log and its pure decisions. Start reading at `log.py`; the bytes on disk are `docs/log-format.md`."""
