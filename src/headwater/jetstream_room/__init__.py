"""How much the streams of an account, and of the server, may take, and what the disk has left for them."""
