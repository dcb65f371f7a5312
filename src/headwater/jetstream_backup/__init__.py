"""Backups of streams: writing and sending an archive, receiving one and building a stream from it."""
