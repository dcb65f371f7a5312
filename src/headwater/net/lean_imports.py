"""Import libraries without others that they take where they are, and that a command line does not need.

None in `sys.modules` is the documented way to make an import fail, and both libraries allow this one to.
"""

import sys


def import_asyncio() -> None:
    """Import asyncio without `ssl`: loading OpenSSL takes a seventh of the time until the first client can connect.

    Python can be built without OpenSSL, so asyncio allows `import ssl` to fail and then only lacks its own TLS transports.
    Nothing here uses them: our TLS (net/tls.py) is a layer over plain transports, and imports `ssl` when there is a
    certificate. Guarded by `test_openssl_is_loaded_for_a_certificate_only` and
    `test_asyncio_without_openssl_leaves_ssl_to_others`.
    """
    _import_without("ssl", "asyncio")


def import_msgspec() -> None:
    """Import msgspec without `typing_extensions`, of which it takes what Python has itself since 3.11; with `inspect`,
    which only that one uses at once, it takes 5 ms.
    """
    _import_without("typing_extensions", "msgspec")


def _import_without(missing: str, module: str) -> None:
    if module in sys.modules or missing in sys.modules:
        return
    sys.modules[missing] = None  # type: ignore[assignment]
    try:
        __import__(module)
    finally:
        del sys.modules[missing]
