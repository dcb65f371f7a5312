"""What a log and its documents are written through: the calls of the file system, syncs side by side, small documents in
two copies, the locked directory of a server. Start reading at `files.py`."""
