"""JetStream's advisories and metrics on `$JS.EVENT.>`, with nats-server's documents."""
