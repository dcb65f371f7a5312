"""How a stream copies another one: what a copy asks of its origin, how it follows it, and what it remembers."""
