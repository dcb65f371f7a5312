"""Import asyncio without OpenSSL, for commands that may need no certificate."""

import sys


def import_asyncio() -> None:
    """Import asyncio without `ssl`: loading OpenSSL takes a seventh of the time until the first client can connect.

    Python can be built without OpenSSL, so asyncio allows `import ssl` to fail and then only lacks its own TLS transports.
    Nothing here uses them: our TLS (net/tls.py) is a layer over plain transports, and imports `ssl` when there is a
    certificate. None in `sys.modules` is the documented way to make an import fail. Guarded by
    `test_openssl_is_loaded_for_a_certificate_only` and `test_asyncio_without_openssl_leaves_ssl_to_others`.
    """
    if "asyncio" in sys.modules or "ssl" in sys.modules:
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]
    try:
        import asyncio  # noqa: F401
    finally:
        del sys.modules["ssl"]
