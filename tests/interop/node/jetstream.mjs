// Scenarios of @nats-io/jetstream, kv and obj: one per run, its findings as one line of JSON.
//
// Usage: node jetstream.mjs PACKAGES URL SCENARIO, where PACKAGES is the folder that holds node_modules.

import { createRequire } from "node:module";

const [packages, servers, scenario] = process.argv.slice(2);
const from = createRequire(`${packages}/`);
const { connect, headers: newHeaders } = from("@nats-io/transport-node");
const { jetstream, jetstreamManager, AckPolicy, DeliverPolicy } = from("@nats-io/jetstream");
const { Kvm } = from("@nats-io/kv");
const { Objm } = from("@nats-io/obj");

const connection = await connect({ servers, timeout: 10_000, reconnect: false });
const js = jetstream(connection);
const manager = await jetstreamManager(connection);
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

const findings = await scenarios[scenario]();
process.stdout.write(`${JSON.stringify(findings)}\n`);
await connection.close();
