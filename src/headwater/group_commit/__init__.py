"""Making logs durable from the event loop: one write for all waiting publishes, in threads where the disk is slow. Start
reading at `committer.py`."""
