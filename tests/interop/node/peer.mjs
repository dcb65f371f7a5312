// A NATS client of the npm package @nats-io/transport-node, driven by lines of JSON: one request in, one answer out.
//
//   {"do": "subscribe", "as": "a", "subject": "x.>", "queue": "q"}      {"ok": true}
//   {"do": "publish", "subject": "x.1", "data": "aGk=", "headers": [["A", "1"]], "reply": "r"}
//   {"do": "receive", "as": "a", "count": 2}                            {"ok": true, "messages": [...]}
//   {"do": "serve", "subject": "svc", "queue": "q", "tag": "me"}        answers a request with "me:" + its data, and its headers
//   {"do": "request", "subject": "svc", "data": "", "headers": []}      {"ok": true, "messages": [...]}
//   {"do": "unsubscribe", "as": "a", "max": 3}, {"do": "flush"}, {"do": "close"}
//
// Usage: node peer.mjs PACKAGES URL (nats:// or ws://), where PACKAGES is the folder that holds node_modules. Payloads are base64.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [packages, servers] = process.argv.slice(2);
const require = createRequire(`${packages}/`);
const { connect: connectTcp, headers: newHeaders } = require("@nats-io/transport-node");
// Over WebSocket the client is that of browsers, with the WebSocket that node brings along.
const connect = servers.startsWith("ws") ? require("@nats-io/nats-core").wsconnect : connectTcp;

const TIMEOUT = 10_000; // milliseconds; the test's own time-out is longer
const subscriptions = new Map();
const connection = await connect({ servers, timeout: TIMEOUT, reconnect: false });

function encodeHeaders(pairs) {
  if (!pairs?.length) return undefined;
  const block = newHeaders();
  for (const [name, value] of pairs) block.append(name, value);
  return block;
}

function describe(message) {
  const pairs = [];
  for (const name of message.headers?.keys() ?? []) {
    for (const value of message.headers.values(name)) pairs.push([name, value]);
  }
  return {
    subject: message.subject,
    reply: message.reply ?? "",
    data: Buffer.from(message.data).toString("base64"),
    headers: pairs,
  };
}

const verbs = {
  async subscribe({ as, subject, queue }) {
    const subscription = connection.subscribe(subject, queue ? { queue } : {});
    subscriptions.set(as, { subscription, messages: subscription[Symbol.asyncIterator]() });
    await connection.flush();
  },
  async unsubscribe({ as, max }) {
    subscriptions.get(as).subscription.unsubscribe(max || undefined);
    await connection.flush();
  },
  async publish({ subject, data, headers, reply }) {
    const options = { headers: encodeHeaders(headers), reply: reply || undefined };
    connection.publish(subject, Buffer.from(data, "base64"), options);
  },
  async receive({ as, count }) {
    const messages = [];
    while (messages.length < count) {
      const { value, done } = await subscriptions.get(as).messages.next();
      if (done) break;
      messages.push(describe(value));
    }
    return { messages };
  },
  async serve({ subject, queue, tag }) {
    connection.subscribe(subject, {
      queue: queue || undefined,
      callback: (_, message) =>
        message.respond(Buffer.concat([Buffer.from(`${tag}:`), message.data]), { headers: message.headers }),
    });
    await connection.flush();
  },
  async request({ subject, data, headers }) {
    const options = { timeout: TIMEOUT, headers: encodeHeaders(headers) };
    return { messages: [describe(await connection.request(subject, Buffer.from(data, "base64"), options))] };
  },
  async flush() {
    await connection.flush();
  },
  async close() {
    await connection.drain();
  },
};

console.log(JSON.stringify({ ok: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  try {
    console.log(JSON.stringify({ ok: true, ...(await verbs[request.do](request)) }));
  } catch (error) {
    console.log(JSON.stringify({ ok: false, error: error.name, text: String(error.message) }));
  }
  if (request.do === "close") break;
}
process.exit(0);
