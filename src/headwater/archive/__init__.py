"""Backups of streams, as bytes: S2 framing, and the archive of nats-server 2.15 inside it. No I/O."""
