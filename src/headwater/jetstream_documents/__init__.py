"""JetStream's documents, for the server and for clients: streams, consumers, requests, answers, errors, and the rules of a
valid configuration."""
