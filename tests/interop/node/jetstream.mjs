// Scenarios of @nats-io/jetstream, kv and obj: one per run, its findings as one line of JSON.
//
// Usage: node jetstream.mjs PACKAGES URL SCENARIO [DOMAIN], where PACKAGES is the folder that holds node_modules.

import { createRequire } from "node:module";

const [packages, servers, scenario, domain] = process.argv.slice(2);
const from = createRequire(`${packages}/`);
const { connect, headers: newHeaders } = from("@nats-io/transport-node");
const { jetstream, jetstreamManager, AckPolicy, DeliverPolicy } = from("@nats-io/jetstream");
const { Kvm } = from("@nats-io/kv");
const { Objm } = from("@nats-io/obj");

const connection = await connect({ servers, timeout: 10_000, reconnect: false });
const js = jetstream(connection, { domain });
const manager = await jetstreamManager(connection, { domain });
const text = (data) => Buffer.from(data).toString();

async function filled(name, count) {
  await manager.streams.add({ name, subjects: [`${name}.>`], allow_direct: true });
  for (let n = 0; n < count; n++) await js.publish(`${name}.${n % 3}`, `${n}`);
}

async function refusal(action) {
  try {
    await action();
    return null;
  } catch (error) {
    return [error.name, error.message];
  }
}

const scenarios = {
  async streams() {
    await filled("NODE", 5);
    const first = await js.publish("NODE.id", "x", { msgID: "one" });
    const again = await js.publish("NODE.id", "x", { msgID: "one" });
    const wrong = await refusal(() => js.publish("NODE.id", "y", { expect: { lastSequence: 99 } }));
    const info = await manager.streams.info("NODE", { subjects_filter: ">" });
    const got = await manager.streams.getMessage("NODE", { last_by_subj: "NODE.1" });
    await manager.streams.deleteMessage("NODE", 2);
    const purged = await manager.streams.purge("NODE", { filter: "NODE.0" });
    const names = [];
    for await (const name of manager.streams.names()) names.push(name);
    const missing = await refusal(() => manager.streams.info("NOBODY"));
    return {
      first: first.seq, duplicate: again.duplicate, again: again.seq, wrong, messages: info.state.messages,
      subjects: info.state.subjects, got: [got.seq, text(got.data)], purged: purged.purged, names, missing,
      account: (await manager.getAccountInfo()).streams,
    };
  },
  async consumers() {
    await filled("READ", 12);
    await manager.consumers.add("READ", { durable_name: "d", ack_policy: AckPolicy.Explicit });
    const consumer = await js.consumers.get("READ", "d");
    const fetched = [];
    for await (const message of await consumer.fetch({ max_messages: 5, expires: 2000 })) {
      fetched.push([message.seq, message.info.deliveryCount, text(message.data)]);
      if (message.seq === 2) message.nak();
      else await message.ackAck();
    }
    const next = await consumer.next({ expires: 2000 });
    next.ack();
    const info = await consumer.info();
    const consumed = [];
    const flow = await consumer.consume({ max_messages: 3 });
    for await (const message of flow) {
      consumed.push(message.seq);
      message.ack();
      if (consumed.length === 7) break;
    }
    return { fetched, next: next.seq, redelivered: next.redelivered, pending: info.num_pending, consumed };
  },
  async ordered() {
    await filled("ORDER", 700);
    const consumer = await js.consumers.get("ORDER", { filter_subjects: "ORDER.1", deliver_policy: DeliverPolicy.All });
    const seen = [];
    for await (const message of await consumer.consume()) {
      seen.push(message.seq);
      if (message.info.pending === 0) break;
    }
    return { count: seen.length, first: seen[0], last: seen.at(-1), ascending: seen.every((s, i) => !i || s > seen[i - 1]) };
  },
  async push() {
    await filled("PUSHED", 6);
    await manager.consumers.add("PUSHED", {
      name: "p", deliver_subject: "to.node", ack_policy: AckPolicy.Explicit, idle_heartbeat: 1_000_000_000,
      flow_control: true,
    });
    const consumer = await js.consumers.getPushConsumer("PUSHED", "p");
    const seen = [];
    for await (const message of await consumer.consume()) {
      seen.push([message.seq, text(message.data)]);
      message.ack();
      if (seen.length === 6) break;
    }
    return { seen };
  },
  async direct() {
    await filled("DIRECT", 9);
    const one = await manager.direct.getMessage("DIRECT", { seq: 4 });
    const batch = [];
    for await (const found of await manager.direct.getBatch("DIRECT", { seq: 2, batch: 4 })) batch.push(found.seq);
    const lasts = [];
    const wanted = { multi_last: ["DIRECT.0", "DIRECT.2"] };
    for await (const found of await manager.direct.getLastMessagesFor("DIRECT", wanted)) lasts.push(found.seq);
    const missing = await manager.direct.getMessage("DIRECT", { seq: 99 });
    return { one: [one.seq, one.subject, text(one.data)], batch, lasts, missing };
  },
  async keys() {
    const kv = await new Kvm(js).create("node", { history: 3 });
    const revisions = [await kv.put("a", "1"), await kv.put("b", "2"), await kv.put("a", "3")];
    const exists = await refusal(() => kv.create("a", "4"));
    revisions.push(await kv.update("a", "5", 3));
    const stale = await refusal(() => kv.update("a", "6", 3));
    await kv.delete("b");
    const history = [];
    for await (const entry of await kv.history({ key: "a" })) history.push([entry.revision, entry.operation, entry.string()]);
    const watched = [];
    for await (const entry of await kv.watch()) {
      watched.push([entry.key, entry.operation]);
      if (entry.delta === 0) break;
    }
    await kv.purge("a");
    const keys = [];
    for await (const key of await kv.keys()) keys.push(key);
    const gone = await kv.get("b");
    const status = await kv.status();
    return {
      revisions, exists: exists !== null, stale: stale !== null, history, watched, keys,
      gone: [gone.operation, gone.length], values: status.values, bucket: status.bucket,
    };
  },
  async objects() {
    const store = await new Objm(js).create("node", { description: "objects" });
    const content = new Uint8Array(300_000).map((_, n) => n % 251);
    const options = newHeaders();
    options.set("Own", "kept");
    const info = await store.putBlob({ name: "blob", headers: options, options: { max_chunk_size: 50_000 } }, content);
    const back = await store.getBlob("blob");
    await store.putBlob({ name: "blob" }, new Uint8Array(5));
    const listed = (await store.list()).map((one) => [one.name, one.size]);
    await store.delete("blob");
    const gone = await store.getBlob("blob");
    return {
      size: info.size, chunks: info.chunks, digest: info.digest.startsWith("SHA-256="), header: info.headers?.get("Own"),
      equal: back.length === content.length && back.every((byte, n) => byte === content[n]), listed, gone,
    };
  },
};

Object.assign(scenarios, {
  async publishing() {
    await manager.streams.add({ name: "PUB", subjects: ["PUB.>"], max_msgs_per_subject: 2, allow_rollup_hdrs: true });
    const put = async (subject, options = {}) => {
      try {
        const ack = await js.publish(subject, "x", options);
        return [ack.seq, ack.duplicate];
      } catch (error) {
        return [error.name, error.message];
      }
    };
    const roll = newHeaders();
    roll.set("Nats-Rollup", "sub");
    const acks = [
      await put("PUB.a", { msgID: "1" }),
      await put("PUB.a", { msgID: "1" }),
      await put("PUB.a", { expect: { streamName: "OTHER" } }),
      await put("PUB.a", { expect: { streamName: "PUB", lastSequence: 1 } }),
      await put("PUB.a", { expect: { lastSequence: 1 } }),
      await put("PUB.a", { expect: { lastMsgID: "1" } }),
      await put("PUB.b", { expect: { lastSubjectSequence: 0 } }),
      await put("PUB.b", { expect: { lastSubjectSequence: 0 } }),
      await put("PUB.c", { expect: { lastSubjectSequence: 3, lastSubjectSequenceSubject: "PUB.b" } }),
      await put("PUB.a", { headers: roll }),
    ];
    const counts = (await manager.streams.info("PUB", { subjects_filter: ">" })).state.subjects;
    const full = { max_msgs: 1, discard: "new", max_msgs_per_subject: 1, discard_new_per_subject: true, allow_rollup_hdrs: false };
    const updated = await manager.streams.update("PUB", { ...full, max_msgs: -1, description: "changed" });
    const refused = await put("PUB.a");
    const purges = [
      (await manager.streams.purge("PUB", { filter: "PUB.b", keep: 0 })).purged,
      (await manager.streams.purge("PUB", { seq: 6 })).purged,
      (await manager.streams.purge("PUB", { keep: 1 })).purged,
    ];
    const wrong = [
      await refusal(() => manager.streams.update("PUB", { storage: "memory" })),
      await refusal(() => manager.streams.add({ name: "PUB2", subjects: ["PUB.x"] })),
      await refusal(() => manager.streams.add({ name: "no.name", subjects: ["n"] })),
      await refusal(() => manager.streams.update("PUB", { sealed: false, deny_delete: true, discard: "old" })),
    ];
    await manager.streams.update("PUB", { sealed: true });
    const sealed = [await put("PUB.d"), await refusal(() => manager.streams.deleteMessage("PUB", 6))];
    const listed = [];
    for await (const one of manager.streams.list("PUB.>")) listed.push([one.config.name, one.state.messages]);
    return { acks, counts, description: updated.config.description, refused, purges, wrong, sealed, listed };
  },
  async settling() {
    await filled("SET", 6);
    await manager.consumers.add("SET", {
      durable_name: "s", ack_policy: AckPolicy.Explicit, max_deliver: 3, max_ack_pending: 4,
      filter_subjects: ["SET.0", "SET.1"], backoff: [60_000_000_000, 120_000_000_000],
    });
    const consumer = await js.consumers.get("SET", "s");
    const take = async (max_messages, expires = 1000) => {
      const taken = [];
      for await (const message of await consumer.fetch({ max_messages, expires })) taken.push(message);
      return taken;
    };
    const first = await take(4);
    const seen = [first.map((m) => [m.seq, m.info.deliveryCount, m.info.pending])];
    first[0].nak(10);
    first[1].term("no good");
    first[2].working();
    await first[3].ackAck();
    const second = await take(1, 5000);
    seen.push(second.map((m) => [m.seq, m.info.deliveryCount]));
    second[0].nak();
    const third = await take(1, 5000);
    seen.push(third.map((m) => [m.seq, m.info.deliveryCount]));
    await third[0].ackAck();
    const info = await consumer.info();
    await manager.consumers.pause("SET", "s", new Date(Date.now() + 60_000));
    const paused = await refusal(async () => { if ((await take(1, 1000)).length === 0) throw new Error("nothing"); });
    const resumed = await manager.consumers.resume("SET", "s");
    const changed = await manager.consumers.update("SET", "s", { max_deliver: 5, description: "more" });
    const wrong = await refusal(() => manager.consumers.update("SET", "s", { max_waiting: 3 }));
    const names = [];
    for await (const one of manager.consumers.list("SET")) names.push(one.name);
    return {
      seen, floor: [info.ack_floor.consumer_seq, info.ack_floor.stream_seq], waiting: info.num_ack_pending, redelivered: info.num_redelivered, paused,
      resumed: resumed.paused, changed: [changed.config.max_deliver, changed.config.description], wrong, names,
      gone: await manager.consumers.delete("SET", "s"),
    };
  },
  async policies() {
    await filled("POL", 9);
    const found = {};
    const middle = (await manager.streams.getMessage("POL", { seq: 5 })).timestamp; // `time` has milliseconds only
    const policies = {
      all: {}, last: { deliver_policy: DeliverPolicy.Last }, new: { deliver_policy: DeliverPolicy.New },
      lasts: { deliver_policy: DeliverPolicy.LastPerSubject, filter_subject: "POL.*" },
      sequence: { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: 6 },
      time: { deliver_policy: DeliverPolicy.StartTime, opt_start_time: middle },
      headers: { headers_only: true, deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: 8 },
    };
    for (const [name, config] of Object.entries(policies)) {
      await manager.consumers.add("POL", { name, ack_policy: AckPolicy.None, inactive_threshold: 60_000_000_000, ...config });
      const consumer = await js.consumers.get("POL", name);
      found[name] = [];
      const waiting = (await consumer.info()).num_pending;
      for await (const message of await consumer.fetch({ max_messages: waiting || 1, expires: 1000 })) {
        found[name].push([message.seq, message.data.length, message.headers?.get("Nats-Msg-Size") ?? null]);
      }
    }
    return found;
  },
  async buckets() {
    const manager_ = new Kvm(js);
    const kv = await manager_.create("more", { history: 4, ttl: 60_000, max_bytes: 100_000, maxValueSize: 200, description: "d" });
    await kv.put("x.a", "1");
    await kv.put("x.b", "2");
    await kv.put("y", "3");
    await kv.create("z", "4");
    await kv.delete("x.b", { previousSeq: 2 });
    const stale = await refusal(() => kv.delete("y", { previousSeq: 1 }));
    const again = await kv.create("x.b", "5");
    const long = await refusal(() => kv.put("y", "x".repeat(300)));
    await kv.put("y", "6");
    await kv.purge("z");
    const old = await kv.get("y", { revision: 3 });
    const keys = [];
    for await (const key of await kv.keys("x.>")) keys.push(key);
    const history = [];
    for await (const entry of await kv.history({ key: ["x.*", "y"] })) history.push([entry.key, entry.operation, entry.revision]);
    const updates = await kv.watch({ include: "updates", key: "y" });
    await kv.put("x.a", "7");
    await kv.put("y", "8");
    const watched = [];
    for await (const entry of updates) {
      watched.push([entry.key, entry.string()]);
      break;
    }
    await kv.purgeDeletes(0);
    const status = await kv.status();
    const names = [];
    for await (const one of manager_.list()) names.push(one.bucket);
    const opened = await manager_.open("more");
    const seen = (await opened.get("y")).string();
    const gone = await kv.destroy();
    return {
      stale: stale !== null, again, long: long !== null, old: old.string(), keys, history, watched, values: status.values,
      history_: status.history, ttl: status.ttl, size: status.max_bytes, names: names.includes("more"), seen, gone,
    };
  },
  async markers() {
    const kv = await new Kvm(js).create("marked", { markerTTL: 1000 });
    const updates = await kv.watch({ include: "updates" });
    await kv.create("k", "v", "1s");
    await kv.put("stays", "w");
    const seen = [];
    for await (const entry of updates) {
      seen.push([entry.key, entry.operation, entry.string()]);
      if (seen.length === 3) break;
    }
    await kv.purge("stays", { ttl: "1s" });
    return { seen, purged: (await kv.get("stays"))?.operation ?? null };
  },
  async links() {
    const manager_ = new Objm(js);
    const store = await manager_.create("first", { storage: "memory" });
    const other = await manager_.create("second");
    const info = await store.putBlob({ name: "a", description: "one" }, new TextEncoder().encode("hello"));
    await other.link("to-a", info);
    await other.linkStore("to-first", store);
    const followed = new TextDecoder().decode(await other.getBlob("to-a"));
    const link = (await other.info("to-first")).options?.link?.bucket;
    await store.update("a", { name: "b", description: "two", metadata: { k: "v" } });
    const renamed = await store.info("b");
    const seen = [];
    await store.putBlob({ name: "c" }, new Uint8Array(300_000));
    for await (const one of await store.watch({ includeHistory: true })) {
      if (one === null || one.isUpdate) break;
      seen.push([one.name, one.size, one.deleted]);
      if (seen.length === 2) break;
    }
    await store.delete("c");
    const status = await store.seal();
    const sealed = await refusal(() => store.putBlob({ name: "d" }, new Uint8Array(1)));
    return {
      followed, link, renamed: [renamed.description, renamed.metadata], old: await store.info("a"), seen: seen.sort(),
      sealed: [status.sealed, sealed !== null], listed: (await store.list()).map((one) => one.name),
      gone: await other.destroy(),
    };
  },
});

const findings = await scenarios[scenario]();
process.stdout.write(`${JSON.stringify(findings)}\n`);
await connection.close();
