"""What JetStream tells about itself on `$JS.EVENT.>`: advisories and metrics, with nats-server's documents."""
