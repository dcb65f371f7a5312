"""Mirrors and sources: requesting a consumer from the origin, following it, and storing the position."""
