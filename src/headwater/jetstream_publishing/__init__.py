"""Publishes into a stream: what captures them from the router, judges, stages and answers them. Start reading at
`publishing.py`; the hot half is `capture.py` on the way in and `acknowledging.py` on the way out."""
