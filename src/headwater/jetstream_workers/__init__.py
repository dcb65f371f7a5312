"""Streams on every worker of `serve --workers N --spread_streams`: where each lives, and who answers for it (ADR 26)."""
