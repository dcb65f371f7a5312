"""A service with requests, replies and metrics: `nats micro ls` and `headwater service stats sums` find it.

python examples/service.py nats://127.0.0.1:4222"""

import asyncio
import json
import sys

import headwater
from headwater.client.service import Request, Service, ServiceError, add_service


def add(request: Request) -> bytes:
    """The sum of a JSON list of numbers."""
    try:
        return json.dumps(sum(json.loads(request.data))).encode()
    except (ValueError, TypeError) as error:
        raise ServiceError(400, f"a JSON list of numbers, please: {error}") from error


def metrics(service: Service) -> bytes:
    """What the service has done, as Prometheus reads it; times are seconds."""
    lines: list[str] = []
    for each in service.stats().endpoints:
        label = f'{{endpoint="{each.name}"}}'
        lines.append(f"service_requests_total{label} {each.num_requests}")
        lines.append(f"service_errors_total{label} {each.num_errors}")
        lines.append(f"service_processing_seconds_total{label} {each.processing_time:.6f}")
    return "\n".join([*lines, ""]).encode()


async def main(url: str) -> str:
    """Serve (a second process that does shares the work), ask twice, once wrongly, and read the metrics."""
    async with (
        await headwater.connect(url) as client,
        await add_service(client, "sums", "1.0.0", description="adds numbers") as service,
    ):
        await service.endpoint("add", add, subject="sums.add")
        await service.endpoint("metrics", lambda request: metrics(service), subject="sums.metrics")

        print((await client.request("sums.add", b"[1, 2, 3.5]", timeout=5)).data)
        refused = await client.request("sums.add", b"nonsense", timeout=5)
        print(refused.headers["Nats-Service-Error-Code"], refused.headers["Nats-Service-Error"])
        return (await client.request("sums.metrics", b"", timeout=5)).data.decode()


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1] if sys.argv[1:] else "nats://127.0.0.1:4222")))
