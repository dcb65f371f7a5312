"""A service with requests, replies and metrics: `nats micro ls` and `headwater service stats sums` find it.

python examples/service.py nats://127.0.0.1:4222
"""

import asyncio
import json
import sys

import headwater
from headwater.client.client import Client
from headwater.client.service import Request, Service, ServiceError, add_service


def add(request: Request) -> bytes:
    """The sum of a JSON list of numbers."""
    try:
        return json.dumps(sum(json.loads(request.data))).encode()
    except (ValueError, TypeError) as error:
        raise ServiceError(400, f"a JSON list of numbers, please: {error}") from error


def metrics(service: Service) -> str:
    """What the service has done, as Prometheus reads it; times are seconds."""
    lines: list[str] = []
    for each in service.stats().endpoints:
        label = f'{{endpoint="{each.name}"}}'
        lines.append(f"service_requests_total{label} {each.num_requests}")
        lines.append(f"service_errors_total{label} {each.num_errors}")
        lines.append(f"service_processing_seconds_total{label} {each.processing_time:.6f}")
    return "\n".join(lines) + "\n"


async def serve(client: Client) -> Service:
    """The service; a second process that runs this shares the work."""
    service = await add_service(client, "sums", "1.0.0", description="adds numbers")
    await service.endpoint("add", add, subject="sums.add")

    def answer(request: Request) -> bytes:
        return metrics(service).encode()

    await service.endpoint("metrics", answer, subject="sums.metrics")
    return service


async def main(url: str) -> str:
    """Serve, ask twice, once wrongly, and read the metrics."""
    async with await headwater.connect(url) as client, await serve(client):
        print((await client.request("sums.add", b"[1, 2, 3.5]", timeout=5)).data)
        refused = await client.request("sums.add", b"nonsense", timeout=5)
        print(refused.headers["Nats-Service-Error-Code"], refused.headers["Nats-Service-Error"])
        return (await client.request("sums.metrics", b"", timeout=5)).data.decode()


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1] if sys.argv[1:] else "nats://127.0.0.1:4222")))
