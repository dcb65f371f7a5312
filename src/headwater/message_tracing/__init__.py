"""Traced messages (ADR-41): what is noted while one is routed, and the report of it."""
