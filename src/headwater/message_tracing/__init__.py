"""Message tracing (ADR-41): the events recorded while a message is routed, and their report."""
