"""What an operator does, without the command line: to a running server through its API (backups, live figures), and to logs
that no process has open (survey, repair)."""
