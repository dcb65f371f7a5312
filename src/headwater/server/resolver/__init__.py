"""JWTs of accounts: where they come from while the broker runs: a directory, other servers, a URL, pushes."""
