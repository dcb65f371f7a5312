"""Timed work of a stream: expiry of messages, schedules, and steps of the system clock."""
