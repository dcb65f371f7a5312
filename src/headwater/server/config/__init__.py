"""The language and the fields of nats-server's configuration files."""
