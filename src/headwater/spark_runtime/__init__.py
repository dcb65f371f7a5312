"""Spark itself: what it is started with on this machine, where that is kept, what its Python processes are made to do."""
