"""Backups of streams: what goes into an archive and how it is sent, how one comes in and becomes a stream."""
