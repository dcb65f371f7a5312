"""Making logs durable in the event loop: one write for all who wait, in threads where the disk is slow. Start reading at
`committer.py`."""
