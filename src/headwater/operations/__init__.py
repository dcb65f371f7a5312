"""What an operator does to a running server through its API, without the command line: backups, live figures."""
