"""/metrics has the exporter's names and Prometheus can read it."""

import asyncio
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from support.monitored import monitored, work

from headwater.options.cluster import ClusterOptions
from headwater.options.leaf import LeafOptions, RemoteOptions
from headwater.testing.ports import free_port

EXPORTED = (
    "gnatsd_varz_cpu gnatsd_varz_mem gnatsd_varz_in_msgs gnatsd_varz_out_msgs gnatsd_varz_in_bytes gnatsd_varz_out_bytes "
    "gnatsd_varz_connections gnatsd_varz_subscriptions gnatsd_varz_slow_consumers gnatsd_varz_start "
    "gnatsd_varz_jetstream_stats_storage gnatsd_varz_slow_consumer_stats_clients gnatsd_connz_num_connections "
    "gnatsd_connz_total gnatsd_connz_in_msgs gnatsd_connz_pending_bytes gnatsd_healthz_status "
    "jetstream_server_jetstream_disabled jetstream_server_total_streams jetstream_server_total_consumers "
    "jetstream_server_total_messages jetstream_server_total_message_bytes jetstream_server_max_memory "
    "jetstream_server_max_storage jetstream_account_storage_used jetstream_stream_total_messages "
    "jetstream_stream_total_bytes jetstream_stream_first_seq jetstream_stream_last_seq jetstream_stream_consumer_count "
    "jetstream_stream_subject_count jetstream_stream_limit_messages jetstream_stream_limit_bytes "
    "jetstream_consumer_delivered_consumer_seq jetstream_consumer_delivered_stream_seq jetstream_consumer_num_ack_pending "
    "jetstream_consumer_num_redelivered jetstream_consumer_num_waiting jetstream_consumer_num_pending "
    "jetstream_consumer_ack_floor_stream_seq jetstream_consumer_ack_floor_consumer_seq "
    "jetstream_consumer_last_delivery_seconds jetstream_consumer_last_ack_seconds jetstream_account_max_storage "
    "jetstream_account_max_memory jetstream_account_memory_used gnatsd_subsz_num_subscriptions gnatsd_routez_num_routes "
    "gnatsd_leafz_conn_nodes_total headwater_write_sync_p99_seconds headwater_write_ack_p99_seconds headwater_events "
    "headwater_disk_free_bytes headwater_disk_seconds_until_full"
).split() + [
    f"gnatsd_accountz_{name}"
    for name in (
        "client_connections leafnode_connections subscriptions is_system expired complete jetstream_enabled limit_subs "
        "limit_data limit_payload limit_imports limit_exports limit_wildcards limit_conn limit_leaf"
    ).split()
] + [
    f"gnatsd_accstatz_{name}"
    for name in (
        "current_connections total_connections subscriptions leaf_nodes sent_messages sent_bytes received_messages "
        "received_bytes slow_consumers"
    ).split()
]  # fmt: skip


def test_the_exporters_names_with_the_brokers_numbers(tmp_path: Path) -> None:
    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path, server_name="n1") as server:
            link = await asyncio.to_thread(work, server.broker.port)
            answer = await server.ask("/metrics")
            assert answer.content_type.startswith("text/plain; version=0.0.4")
            families = {one.name: one for one in text_string_to_metric_families(answer.body.decode())}
            assert [name for name in EXPORTED if name not in families] == []
            (sample,) = families["jetstream_stream_total_messages"].samples
            assert sample.value == 1
            assert (sample.labels["stream_name"], sample.labels["server_name"]) == ("S", "n1")
            (sample,) = families["jetstream_consumer_num_ack_pending"].samples
            assert (sample.value, sample.labels["consumer_name"]) == (1, "D")
            (sample,) = families["gnatsd_varz_connections"].samples
            assert (sample.value, sample.labels["server_id"]) == (1, server.broker.server_id)
            (sample,) = families["jetstream_consumer_last_ack_seconds"].samples
            assert sample.value == -1
            assert families["gnatsd_healthz_status"].samples[0].value == 0
            link.close()

    asyncio.run(main())


def test_what_was_lost_between_brokers_or_asked_for_by_who_had_gone_is_a_number(tmp_path: Path) -> None:
    async def main() -> None:
        cluster = ClusterOptions(name="hw", host="127.0.0.1")
        async with monitored(jetstream=True, store_dir=tmp_path, cluster=cluster) as server:
            link = await asyncio.to_thread(work, server.broker.port)
            link.close()
            server.broker.jetstreams["$G"].streams["S"].requests_dropped = 1
            answer = await server.ask("/metrics")
            families = {one.name: one for one in text_string_to_metric_families(answer.body.decode())}
            (sample,) = families["headwater_stream_requests_dropped"].samples
            assert (sample.value, sample.labels["stream_name"], sample.labels["account"]) == (1, "S", "$G")
            for name in ("headers_dropped", "groups_missed", "passed_on"):
                accounts = {each.labels["account"]: each.value for each in families[f"headwater_route_{name}"].samples}
                assert accounts == {"$G": 0, "$SYS": 0}

    asyncio.run(main())


def test_what_leaf_nodes_kept_back_or_were_refused_is_a_number() -> None:
    async def main() -> None:
        remote = RemoteOptions(urls=(f"nats-leaf://127.0.0.1:{free_port()}",))
        async with monitored(leafnodes=LeafOptions(remotes=(remote,))) as server:
            answer = await server.ask("/metrics")
            families = {one.name: one for one in text_string_to_metric_families(answer.body.decode())}
            assert families["headwater_leaf_remotes_not_joined"].samples[0].value == 1
            for name in ("connections", "headers_dropped", "kept_back", "refused", "groups_missed"):
                accounts = {each.labels["account"]: each.value for each in families[f"headwater_leaf_{name}"].samples}
                assert accounts == {"$G": 0}

    asyncio.run(main())


def test_the_prefix_is_chosen_by_configuration_or_in_the_url(tmp_path: Path) -> None:
    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            named = (await server.ask("/metrics?prefix=nats")).body.decode()
            assert "\nnats_varz_connections{" in named
            assert "\nnats_server_total_streams{" in named
            assert "gnatsd_" not in named
            refused = await server.ask("/metrics?prefix=1-x")
            assert (refused.status, b"no beginning" in refused.body) == (400, True)
            assert (await server.ask("/metrics?connz_detailed=maybe")).status == 400

    asyncio.run(main())


def test_each_client_is_there_where_the_url_says_so() -> None:
    async def main() -> None:
        async with monitored() as server:
            link = await server.dial(name="one", lang="raw", version="9")
            plain = (await server.ask("/metrics")).body.decode()
            assert "gnatsd_connz_rtt" not in plain
            detailed = (await server.ask("/metrics?connz_detailed=1")).body.decode()
            families = {one.name: one for one in text_string_to_metric_families(detailed)}
            (sample,) = [one for one in families["gnatsd_connz_subscriptions"].samples if "cid" in one.labels]
            assert (sample.labels["name"], sample.labels["lang"], sample.labels["version"]) == ("one", "raw", "9")
            assert len(families["gnatsd_connz_in_msgs"].samples) == 2
            assert families["gnatsd_connz_start"].samples[0].value > 1.7e12
            await asyncio.to_thread(link.close)

    asyncio.run(main())
