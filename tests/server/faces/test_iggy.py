"""Iggy as a part of the broker that a program embeds: started, stopped and configured with it."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from support.certificates import make_certificates

import headwater
from headwater import Broker
from headwater.errors import ConfigError, EnvironmentProblem, IggyError, LocalProtocolError
from headwater.iggy.face import IggyOptions
from headwater.iggy.service_options import ServiceOptions
from headwater.iggy_client.client import connect
from headwater.iggy_wire.commands import Message
from headwater.model.worker_options import WorkerOptions
from headwater.net.listener_options import TlsOptions
from headwater.options.access import AccountOptions, JetStreamLimits
from headwater.options.broker import BrokerOptions
from headwater.server.faces.iggy import IggyFace, completed
from headwater.testing.running import RunningBroker

LOCAL = "127.0.0.1", 0


def test_an_embedded_broker_has_the_ports_of_its_iggy_listeners(tmp_path: Path) -> None:
    async def main() -> None:
        options = IggyOptions(tcp=LOCAL, seed=LOCAL, http=LOCAL)
        async with asyncio.timeout(40), Broker(jetstream=True, store_dir=tmp_path, iggy=options) as broker:
            found = broker.iggy.listeners()
            assert found == {
                "tcp": ("127.0.0.1", broker.iggy.tcp_port),
                "seed": ("127.0.0.1", broker.iggy.seed_port),
                "http": ("127.0.0.1", broker.iggy.http_port),
            }
            assert len({port for _, port in found.values()}) == 3 and all(port for _, port in found.values())
        assert (tmp_path / "iggy" / "catalog.a").exists()

    asyncio.run(main())


def test_a_topic_outlives_the_broker_and_is_a_stream_when_its_first_client_connects(tmp_path: Path) -> None:
    async def main() -> None:
        for start in range(2):
            options = IggyOptions(tcp=LOCAL)
            async with asyncio.timeout(40), Broker(jetstream=True, store_dir=tmp_path, iggy=options) as broker:
                async with await connect(f"iggy://iggy:iggy@127.0.0.1:{broker.iggy.tcp_port}") as client:
                    if not start:
                        await client.create_stream("orders")
                        await client.create_topic("orders", "eu", 1)
                    await client.send("orders", "eu", [Message(b"x")], 0)
                if start:
                    nats = await headwater.connect(broker.url)
                    info = await nats.jetstream().stream_info("iggy-orders-eu-0")
                    assert info.state.messages == 2
                    await nats.close()

    asyncio.run(main())


def test_a_broker_without_iggy_names_the_keyword(tmp_path: Path) -> None:
    async def main() -> None:
        broker = Broker(iggy=IggyOptions(tcp=LOCAL), store_dir=tmp_path)
        with pytest.raises(LocalProtocolError, match="start it first"):
            _ = broker.iggy
        async with broker:
            assert broker.iggy.tcp_port
        async with Broker() as plain:
            with pytest.raises(LocalProtocolError, match="iggy=IggyOptions"):
                _ = plain.iggy

    asyncio.run(main())


def test_an_address_that_is_taken_stops_the_start_and_leaves_nothing_open(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(40),
            Broker(jetstream=True, store_dir=tmp_path / "a", iggy=IggyOptions(tcp=LOCAL)) as one,
        ):
            taken = IggyOptions(http=LOCAL, tcp=("127.0.0.1", one.iggy.tcp_port))
            other = Broker(jetstream=True, store_dir=tmp_path / "b", iggy=taken)
            with pytest.raises(EnvironmentProblem):
                await other.start()
            async with Broker(jetstream=True, store_dir=tmp_path / "b", iggy=IggyOptions(tcp=LOCAL)):
                pass  # neither the directories nor the client port are held

    asyncio.run(main())


def test_a_running_broker_keeps_its_iggy_ports_over_a_restart(tmp_path: Path) -> None:
    with RunningBroker(jetstream=True, store_dir=tmp_path, iggy=IggyOptions(tcp=LOCAL, http=LOCAL)) as running:
        before = running.broker.iggy.listeners()
        running.restart()
        assert running.broker.iggy.listeners() == before


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: IggyOptions(tcp=("127.0.0.1", 70_000)),
        lambda: IggyOptions(cert_file=Path("cert.pem")),
        lambda: ServiceOptions(sync="sometimes"),  # type: ignore[arg-type]
        lambda: ServiceOptions(unique_ids_seconds=-1),
        lambda: ServiceOptions(housekeeping=0),
    ],
)
def test_an_option_that_cannot_work_is_refused_before_the_start(wrong: Callable[[], object]) -> None:
    with pytest.raises(ConfigError):
        wrong()


def test_the_password_of_the_first_user_is_in_no_repr() -> None:
    assert "hidden" not in repr(IggyOptions(service=ServiceOptions(root_password="hidden")))


def test_sync_policy_and_certificate_are_the_brokers_unless_iggy_has_its_own(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    tls = TlsOptions(cert_file=certificates.server_cert, key_file=certificates.server_key)
    broker = BrokerOptions(sync="interval", tls=tls)
    borrowed = completed(IggyOptions(), broker)
    assert (borrowed.service.sync, borrowed.cert_file, borrowed.key_file) == ("interval", tls.cert_file, tls.key_file)
    own = IggyOptions(cert_file=Path("c"), key_file=Path("k"), service=ServiceOptions(sync="never"))
    assert completed(own, broker) == own


def test_a_listener_that_others_reach_without_a_secret_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(options: IggyOptions) -> list[str]:
        caplog.clear()
        async with asyncio.timeout(40), Broker(jetstream=True, store_dir=tmp_path, iggy=options):
            return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]

    anyone = "0.0.0.0", 0
    assert asyncio.run(main(IggyOptions(tcp=LOCAL, seed=LOCAL))) == []
    secret = ServiceOptions(root_password="s3cret!")
    assert asyncio.run(main(IggyOptions(tcp=anyone, service=secret))) == []
    (open_to_all,) = asyncio.run(main(IggyOptions(tcp=anyone)))
    assert open_to_all == "Iggy (tcp) on 0.0.0.0 is open to every machine that reaches it"
    (open_to_all,) = asyncio.run(main(IggyOptions(tcp=None, seed=anyone, service=secret)))
    assert open_to_all == "Iggy (seed) on 0.0.0.0 is open to every machine that reaches it"


def test_streams_of_other_accounts_only_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        accounts = (AccountOptions(name="A", jetstream=JetStreamLimits()),)
        options = BrokerOptions(jetstream=True, store_dir=tmp_path, accounts=accounts)
        async with asyncio.timeout(40), Broker(options=options, iggy=IggyOptions(tcp=LOCAL)):
            assert "the global account has none" in caplog.text

    asyncio.run(main())


def test_streams_that_are_spread_over_workers_are_warned_of_and_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        worker = WorkerOptions(number=1, count=2, spread=True)
        face = IggyFace(IggyOptions(tcp=LOCAL), BrokerOptions(jetstream=True, store_dir=tmp_path, worker=worker), {})
        async with asyncio.timeout(40):
            await face.start()
            assert "the stream `nats` and the streams `iggy-...` are not there" in caplog.text
            async with await connect(f"iggy://iggy:iggy@127.0.0.1:{face.iggy.tcp_port}") as client:
                with pytest.raises(IggyError) as refused:
                    await client.poll("nats", "orders")
                assert refused.value.number == 2010
            await face.stop()

    asyncio.run(main())
