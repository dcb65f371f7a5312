"""Connections to Iggy servers that cannot come about: an error at once, with the option."""

import asyncio
import time
from pathlib import Path

from support.certificates import make_certificates

from headwater.errors import HeadwaterError
from headwater.iggy.face import Iggy, IggyOptions
from headwater.spark.iggy.options import parse_source_options
from headwater.spark.iggy.planner import IggyPlanner

ANY = ("127.0.0.1", 0)


def refusal(port: int, host: str = "localhost", **options: str) -> str:
    given = {"servers": f"iggy://{host}:{port}", "stream": "s", "topic": "t", **options}
    begun = time.monotonic()
    try:
        IggyPlanner(parse_source_options(given)).states("t")
    except HeadwaterError as error:
        assert time.monotonic() - begun < 15  # readTimeout is 30
        return str(error)
    raise AssertionError("it was connected")


def test_wrong_tls_and_logins_are_refused_at_once_and_name_the_option(tmp_path: Path) -> None:
    files = make_certificates(tmp_path / "files")
    options = IggyOptions(tcp=ANY, cert_file=files.server_cert, key_file=files.server_key)
    trusted, stranger = str(files.ca), str(files.stranger_ca)

    def check(port: int) -> None:
        assert "there is no topic t" in refusal(port, tlsCa=trusted)
        assert "option tlsCa" in refusal(port, tlsCa=stranger)
        assert "option tlsCa" in (missing := refusal(port, tlsCa=str(tmp_path / "none.pem")))
        assert "none.pem" in missing
        assert "option servers" in refusal(port, "127.1", tlsCa=trusted)
        assert "user, password and token" in refusal(port, tlsCa=trusted, user="nobody")

    async def main() -> None:
        async with asyncio.timeout(60), Iggy(options, tmp_path / "store") as iggy:
            assert iggy.tcp_port is not None
            await asyncio.to_thread(check, iggy.tcp_port)

    asyncio.run(main())
