"""How addresses are written in URLs and messages."""


def bracketed(host: str) -> str:
    """`host` as it stands in front of `:port`: an IPv6 address in brackets, once."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
