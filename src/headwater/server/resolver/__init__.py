"""The sources of accounts' JWTs while the broker runs: a directory, other servers, a URL, pushes."""
