"""Subjects, headers, status, messages, the window of message ids: plain values, the standard library only."""
