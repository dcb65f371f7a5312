// The live page. It reads, and writes nothing but its own document: every text goes through textContent.
"use strict";
const base = document.documentElement.dataset.base;
const EVERY = 2000; // ms between two looks
const KEPT = 300; // samples, as many as the broker keeps
const SLOW_EVERY = 5; // looks; the server's own figures are read that often
const MANY_EVERY = 10; // looks, for tables of more than MANY: 1,000 streams are 1.5 MB, and an open page is to cost under 1 % of a core
const MANY = 200; // streams or clients
const state = {tab: "streams", fields: [], samples: [], server: "", started: 0, looks: 0, opened: "", closed: false,
  streamSort: "rate", connSort: "bytes_to", conn: 0, before: new Map(), rates: new Map(), lag: new Map(), size: 0};

const $ = id => document.getElementById(id);
function el(name, attributes, ...children) {
  const made = ["svg", "polyline", "g", "circle", "line", "text"].includes(name)
    ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "onclick") made.addEventListener("click", value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  for (const child of children) made.append(child instanceof Node ? child : document.createTextNode(String(child ?? "")));
  return made;
}
async function get(path) {
  const answer = await fetch(base + path, {signal: AbortSignal.timeout(10000)});
  if (!answer.ok && answer.status !== 503) throw new Error(path + ": " + answer.status);
  return answer.json();
}

// ── words for numbers ──
const short = n => n === null || n === undefined || Number.isNaN(n) ? "–" : Math.abs(n) >= 1e9 ? (n / 1e9).toFixed(1) + "G"
  : Math.abs(n) >= 1e6 ? (n / 1e6).toFixed(1) + "M" : Math.abs(n) >= 1e4 ? (n / 1e3).toFixed(1) + "k"
  : Number.isInteger(n) ? String(n) : n.toFixed(1);
const whole = n => Number(n ?? 0).toLocaleString("en");
function bytes(n) {
  if (n === null || n === undefined || n < 0) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (n >= 1024 && at < 4) { n /= 1024; at += 1; }
  return n.toFixed(at && n < 100 ? 1 : 0) + " " + units[at];
}
const ms = ns => ns ? (ns / 1e6).toFixed(ns < 1e7 ? 2 : 0) + " ms" : "–";
function span(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const units = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
  for (let at = 0; at < units.length; at++) {
    if (seconds >= units[at][0] || at === 3) {
      const next = units[at + 1];
      const rest = next ? Math.floor((seconds % units[at][0]) / next[0]) : 0;
      return Math.floor(seconds / units[at][0]) + units[at][1] + (rest ? rest + next[1] : "");
    }
  }
}
const since = text => !text || text.startsWith("0001") ? null : (Date.now() - Date.parse(text)) / 1000;

// ── history ──
const at = name => state.fields.indexOf(name);
const series = name => state.samples.map(sample => sample[at(name)]);
const last = name => state.samples.length ? state.samples[state.samples.length - 1][at(name)] : null;
function paces(name) {
  const found = [];
  for (let n = 1; n < state.samples.length; n++) {
    const passed = (state.samples[n][0] - state.samples[n - 1][0]) / 1000;
    found.push(Math.max(0, state.samples[n][at(name)] - state.samples[n - 1][at(name)]) / Math.max(passed, 0.001));
  }
  return found;
}
const pace = name => { const all = paces(name); return all.length ? all[all.length - 1] : null; };
async function readHistory() {
  const from = state.samples.length ? last("time_ms") : 0;
  const found = await get("/historyz?since=" + from);
  if (found.server_id !== state.server || found.started_ms !== state.started) {
    Object.assign(state, {server: found.server_id, started: found.started_ms, samples: [], before: new Map(),
      rates: new Map(), lag: new Map(), opened: "", conn: 0});
    if (from) return readHistory();
  }
  state.fields = found.fields;
  state.diskLeft = found.disk_seconds_left;
  state.peers = found.peers;
  state.workers = found.workers;
  state.samples = state.samples.concat(found.samples).slice(-KEPT);
}

// ── tiles ──
function spark(values) {
  const most = Math.max(...values, 1e-9), step = 100 / Math.max(values.length - 1, 1);
  const points = values.map((v, n) => (n * step).toFixed(1) + "," + (20 - 19 * Math.max(v, 0) / most).toFixed(1)).join(" ");
  return el("svg", {class: "spark", viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true"},
    el("polyline", {points}));
}
function tile(title, value, values, note, bad) {
  return el("div", {class: "tile"}, el("h3", {}, title), el("p", {class: bad ? "bad" : null}, value), spark(values),
    el("small", {}, note || "\u00a0"));
}
function drawTiles() {
  const limit = state.varz ? state.varz.max_connections : 0;
  const left = state.diskLeft;
  const tiles = [
    tile("Messages in", short(pace("in_msgs")) + "/s", paces("in_msgs"), whole(last("in_msgs")) + " since the start"),
    tile("Messages out", short(pace("out_msgs")) + "/s", paces("out_msgs"), whole(last("out_msgs")) + " since the start"),
    tile("Bytes in", bytes(pace("in_bytes")) + "/s", paces("in_bytes"), bytes(last("in_bytes"))),
    tile("Bytes out", bytes(pace("out_bytes")) + "/s", paces("out_bytes"), bytes(last("out_bytes"))),
    tile("Connections", whole(last("connections")), series("connections"), limit ? "of " + whole(limit) : "",
      limit > 0 && last("connections") >= limit),
    tile("Subscriptions", whole(last("subscriptions")), series("subscriptions")),
    tile("Slow consumers", whole(last("slow_consumers")), paces("slow_consumers"), "since the start",
      pace("slow_consumers") > 0),
    tile("CPU", short(last("cpu_percent")) + " %", series("cpu_percent"), "of one processor"),
    tile("Memory", bytes(last("mem")), series("mem"))];
  if (state.varz && state.varz.jetstream && state.varz.jetstream.stats) {
    tiles.push(
      tile("JetStream requests", short(pace("api_requests")) + "/s", paces("api_requests"),
        whole(last("api_errors")) + " errors", pace("api_errors") > 0),
      tile("Sync p99", ms(last("sync_p99_ns")), series("sync_p99_ns"), "p50 " + ms(last("sync_p50_ns"))),
      tile("Ack p99", ms(last("ack_p99_ns")), series("ack_p99_ns"), "p50 " + ms(last("ack_p50_ns"))),
      tile("Disk left", bytes(last("disk_free")), series("disk_free"),
        left === null ? "not filling" : "full in " + span(left), left !== null && left < 86400),
      tile("Refused writes", whole(last("refused_writes")), paces("refused_writes"), "since the start",
        pace("refused_writes") > 0));
  }
  $("tiles").replaceChildren(...tiles);
}

// ── head ──
function drawHead(health) {
  const v = state.varz;
  const good = health.status === "ok";
  const words = [good ? "ok" : health.status + ": " + (health.error || ""), ...(health.warnings || []).slice(0, 3)];
  $("health").className = "pill " + (good ? (health.warnings ? "warn" : "good") : "bad");
  $("health").textContent = words.join(" · ");
  const js = v.jetstream && v.jetstream.config;
  const facts = [["server", v.server_name], ["version", v.git_commit], ["up", v.uptime]];
  if (js) facts.push(["sync", js.sync]);
  $("facts").replaceChildren(...facts.map(([k, t]) => el("div", {}, el("dt", {}, k), el("dd", {}, t))));
  document.title = (good ? "" : "! ") + v.server_name + " · Headwater";
}

// ── tables ──
function table(headings, rows) {
  const head = headings.map(([title, number]) => el("th", {class: number ? "number" : null, scope: "col"}, title));
  return el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows));
}
const cell = (content, number, kind) => el("td", {class: [number ? "number" : "", kind || ""].join(" ").trim() || null}, content);
function rateOf(key, count) {
  const now = Date.now(), old = state.before.get(key);
  state.before.set(key, [now, count]);
  if (old && now - old[0] > 500) state.rates.set(key, Math.max(0, count - old[1]) * 1000 / (now - old[0]));
  return state.rates.get(key) ?? null;
}
function sorting(now, names, choose) {
  const choice = el("select", {"aria-label": "sorted by"}, ...names.map(s => el("option", s === now ? {selected: ""} : {}, s)));
  choice.addEventListener("change", () => { choose(choice.value); drawTab(); });
  return choice;
}
async function streams() {
  const consumers = state.opened ? "&consumers=1&acc=" + encodeURIComponent(state.opened.split("\n")[0]) : "";
  const found = await get("/jsz?streams=1&config=1");
  const detail = consumers ? await get("/jsz?config=1" + consumers) : null;
  const all = [];
  for (const account of found.account_details || [])
    for (const s of account.stream_detail || []) {
      const key = account.name + "\n" + s.name, limit = s.config.max_bytes > 0 ? s.config.max_bytes : 0;
      all.push({key, account: account.name, s, rate: rateOf("s" + key, s.state.last_seq), full: limit ? s.state.bytes / limit : 0,
        limit});
    }
  state.size = all.length;
  const orders = {rate: (a, b) => (b.rate ?? 0) - (a.rate ?? 0), fullness: (a, b) => b.full - a.full,
    size: (a, b) => b.s.state.bytes - a.s.state.bytes, name: (a, b) => a.s.name < b.s.name ? -1 : 1};
  all.sort((a, b) => orders[state.streamSort](a, b) || (a.key < b.key ? -1 : 1));
  const rows = [], choice = sorting(state.streamSort, Object.keys(orders), chosen => { state.streamSort = chosen; });
  for (const one of all.slice(0, MANY)) {
    const st = one.s.state, lost = st.lost ? (st.lost.msgs || []).length : 0;
    const toggle = () => { state.opened = state.opened === one.key ? "" : one.key; drawTab(); };
    const room = el("span", {}, bytes(st.bytes) + " ");
    if (one.limit) room.append(el("meter", {min: 0, max: 1, high: 0.9, value: Math.min(one.full, 1),
      title: Math.round(one.full * 100) + " % of " + bytes(one.limit)}));
    rows.push(el("tr", {class: state.opened === one.key ? "open" : null},
      cell(el("button", {onclick: toggle, "aria-expanded": state.opened === one.key}, one.s.name)), cell(one.account),
      cell(whole(st.messages), true), cell(room, true), cell(one.rate === null ? "–" : short(one.rate) + "/s", true),
      cell(span(since(st.first_ts)), true), cell(whole(st.consumer_count), true),
      cell(lost ? whole(lost) + " lost" : one.s.writes.refused ? whole(one.s.writes.refused) + " refused" : "", true,
        lost ? "bad" : "warn")));
    if (state.opened === one.key) rows.push(el("tr", {class: "open"}, el("td", {colspan: 8}, consumerTable(detail, one))));
  }
  const shown = [el("p", {}, (all.length > MANY ? "the first " + MANY + " of " : "") + whole(all.length) + " streams, sorted by ", choice)];
  if (!all.length) return [el("p", {}, found.disabled ? "JetStream is not enabled." : "There are no streams.")];
  return [...shown, table([["Stream"], ["Account"], ["Messages", 1], ["Bytes", 1], ["Writes", 1], ["Oldest", 1], ["Consumers", 1],
    ["Damage", 1]], rows)];
}
function consumerTable(detail, one) {
  const account = ((detail && detail.account_details) || []).find(a => a.name === one.account);
  const stream = ((account && account.stream_detail) || []).find(s => s.name === one.s.name);
  const rows = ((stream && stream.consumer_detail) || []).map(c => {
    const key = one.key + "\n" + c.name, before = state.lag.get(key);
    const done = rateOf("c" + key, c.delivered.stream_seq);
    state.lag.set(key, c.num_pending);
    const trend = before === undefined || before === c.num_pending ? "" : c.num_pending > before ? " ▲" : " ▼";
    const stuck = c.num_pending > 0 && done === 0;
    const gain = (done ?? 0) - (one.rate ?? 0);
    return el("tr", {}, cell(c.name), cell(whole(c.num_pending) + trend, true, stuck ? "bad" : ""),
      cell(whole(c.num_ack_pending), true), cell(whole(c.num_redelivered), true), cell(whole(c.num_waiting), true),
      cell(span(since(c.delivered.last_active)), true), cell(span(since(c.ack_floor.last_active)), true),
      cell(c.num_pending && gain > 0 ? span(c.num_pending / gain) : c.num_pending ? "never, at this pace" : "", true));
  });
  if (!rows.length) return el("p", {}, "no consumers");
  return table([["Consumer"], ["Pending", 1], ["Unacked", 1], ["Redelivered", 1], ["Waiting pulls", 1], ["Delivered", 1],
    ["Acked", 1], ["Caught up in", 1]], rows);
}
async function connections() {
  const sorts = state.closed ? ["stop", "reason"] : ["bytes_to", "bytes_from", "msgs_to", "msgs_from", "pending", "subs", "idle", "rtt"];
  if (!sorts.includes(state.connSort)) state.connSort = sorts[0];
  const found = await get("/connz?auth=1&limit=" + MANY + "&sort=" + state.connSort + (state.closed ? "&state=closed" : ""));
  state.size = found.total;
  const choice = sorting(state.connSort, sorts, chosen => { state.connSort = chosen; });
  const opened = state.conn && !state.closed ? (await get("/connz?subs=1&cid=" + state.conn)).connections[0] : null;
  const other = el("button", {onclick: () => { state.closed = !state.closed; drawTab(); }},
    state.closed ? "show those that are open" : "show those that have left");
  const rows = found.connections.flatMap(c => {
    const key = "x" + c.cid, open = opened && opened.cid === c.cid;
    const toggle = () => { state.conn = open ? 0 : c.cid; drawTab(); };
    const subs = state.closed ? whole(c.subscriptions)
      : el("button", {onclick: toggle, "aria-expanded": Boolean(open), "aria-label": whole(c.subscriptions) + " subscriptions of client " + c.cid},
        whole(c.subscriptions));
    const row = el("tr", {class: open ? "open" : null}, cell(c.cid, true), cell(c.name || ""), cell(c.account || ""), cell([c.lang, c.version].join(" ")),
      cell(c.ip), cell(state.closed ? c.reason : c.rtt || "–", !state.closed), cell(bytes(c.pending_bytes), true),
      cell(whole(c.in_msgs), true), cell(state.closed ? "" : short(rateOf(key + "i", c.in_msgs)) + "/s", true),
      cell(whole(c.out_msgs), true), cell(state.closed ? "" : short(rateOf(key + "o", c.out_msgs)) + "/s", true),
      cell(c.idle || "", true), cell(subs, true));
    const listed = open ? (opened.subscriptions_list || []).slice(0, MANY).join("  ") || "no subscriptions" : "";
    return open ? [row, el("tr", {class: "open"}, el("td", {colspan: 13, class: "wrap"}, listed))] : [row];
  });
  const head = el("p", {}, whole(found.num_connections) + " of " + whole(found.total) + ", sorted by ", choice, " ", other);
  return [head, table([["Id", 1], ["Name"], ["Account"], ["Client"], ["Address"], [state.closed ? "Reason" : "RTT", !state.closed],
    ["Pending", 1], ["In", 1], ["Rate", 1], ["Out", 1], ["Rate", 1], ["Idle", 1], ["Subs", 1]], rows)];
}
async function accounts() {
  const [found, js] = await Promise.all([get("/accstatz?unused=1"), get("/jsz?accounts=1")]);
  const stored = new Map((js.account_details || []).map(a => [a.name, a]));
  const rows = found.account_statz.map(a => {
    const held = stored.get(a.acc);
    return el("tr", {}, cell(a.acc), cell(whole(a.conns), true), cell(whole(a.leafnodes), true), cell(whole(a.num_subscriptions), true),
      cell(short(rateOf("ai" + a.acc, a.received.msgs)) + "/s", true), cell(short(rateOf("ao" + a.acc, a.sent.msgs)) + "/s", true),
      cell(held ? bytes(held.storage) : "", true), cell(held ? bytes(held.memory) : "", true),
      cell(whole(a.slow_consumers), true, a.slow_consumers ? "warn" : ""));
  });
  return [table([["Account"], ["Connections", 1], ["Leaf nodes", 1], ["Subscriptions", 1], ["In", 1], ["Out", 1], ["On disk", 1],
    ["In memory", 1], ["Slow consumers", 1]], rows)];
}
async function cluster() {
  const [routes, leafs] = await Promise.all([get("/routez"), get("/leafz")]);
  const peers = state.peers || [], known = new Map(routes.routes.map(r => [r.remote_id, r]));
  const ago = p => span((Date.now() - p.since_ms) / 1000);
  const gone = {lost: p => "lost " + ago(p) + " ago", absent: p => "not there for " + ago(p), left: p => "left " + ago(p) + " ago"};
  const nodes = routes.routes.map(r => ({name: r.remote_name || r.remote_id, note: (r.rtt || "") + (r.pending_size ? " · " +
    bytes(r.pending_size) + " wait" : "")}));
  for (const p of peers) if (gone[p.state] && !known.has(p.server_id))
    nodes.push({name: p.name, note: gone[p.state](p), missing: p.state !== "left", left: p.state === "left"});
  for (const leaf of leafs.leafs || []) nodes.push({name: (leaf.is_spoke ? "hub " : "leaf ") + (leaf.name || leaf.id), note: leaf.rtt || ""});
  for (const remote of leafs.remotes || []) if (!remote.joined)
    nodes.push({name: "hub not joined", note: remote.reason || "", missing: true});
  if (!nodes.length) return [el("p", {}, "This broker stands alone.")];
  const turn = n => 2 * Math.PI * n / nodes.length - 1.57;
  const drawn = [], place = n => [300 + 220 * Math.cos(turn(n)), 190 + 140 * Math.sin(turn(n))];
  const kind = node => (node.missing ? " missing" : "") + (node.left ? " left" : "");
  nodes.forEach((node, n) => {
    const [x, y] = place(n);
    drawn.push(el("g", {class: "edge" + kind(node)}, el("line", {x1: 300, y1: 190, x2: x, y2: y}),
      el("text", {x: (300 + x) / 2, y: (190 + y) / 2}, node.note)));
  });
  const circle = (x, y, node) => el("g", {class: "node" + kind(node)}, el("circle", {cx: x, cy: y, r: 26}),
    el("text", {x, y: y + 42}, node.name));
  nodes.forEach((node, n) => drawn.push(circle(...place(n), node)));
  drawn.push(circle(300, 190, {name: routes.server_name}));
  const missing = nodes.filter(node => node.missing), words = nodes.map(n => n.name + (n.note ? " " + n.note : "")).join(", ");
  const said = missing.length ? [el("p", {class: "bad"}, "not joined: " + missing.map(n => n.name + (n.note ? " (" + n.note + ")" : "")).join(", "))] : [];
  return [...said, el("svg", {viewBox: "0 0 600 400", width: "600", role: "img", "aria-label": "Joined with: " + words}, ...drawn)];
}
async function iggy() {
  const found = await get("/iggyz?limit=" + MANY);
  if (found.disabled) return [el("p", {}, "There are no listeners for Iggy clients.")];
  state.size = Math.max(found.num_topics, found.num_clients);
  const some = (shown, all, what) => el("h3", {}, (shown < all ? "the first " + whole(shown) + " of " : "") + whole(all) + " " + what);
  const topics = found.topics.map(t => el("tr", {}, cell(t.stream), cell(t.name), cell(whole(t.partitions), true), cell(whole(t.messages), true),
    cell(bytes(t.bytes), true), cell(short(rateOf("t" + t.stream + "\n" + t.name, t.last_offset_sum)) + "/s", true),
    cell(t.failure || "", false, "bad")));
  const groups = found.topics.flatMap(t => [...t.groups.map(g => [t, g.name, g.members.length, g.behind]), ...t.consumers.map(c => [t, c.name, null, c.behind])]);
  const rows = groups.map(([t, name, members, behind]) => {
    const key = "g" + t.stream + "\n" + t.name + "\n" + name + members, before = state.lag.get(key);
    state.lag.set(key, behind);
    const trend = before === undefined || before === behind ? "" : behind > before ? " ▲" : " ▼";
    return el("tr", {}, cell(t.stream), cell(t.name), cell(name), cell(members === null ? "one consumer" : whole(members) + " members",
      true, members === 0 && behind ? "warn" : ""), cell(whole(behind) + trend, true));
  });
  const clients = found.clients.map(c => el("tr", {}, cell(c.id, true), cell(c.user || "not logged in"), cell(c.address), cell(c.transport), cell(c.era),
    cell(whole(c.groups), true)));
  return [some(topics.length, found.num_topics, "topics"),
    table([["Stream"], ["Topic"], ["Partitions", 1], ["Messages", 1], ["Bytes", 1], ["Writes", 1], [""]], topics),
    el("h3", {}, "Groups and consumers"), rows.length ? table([["Stream"], ["Topic"], ["Group"], ["Members", 1], ["Behind", 1]], rows) : el("p", {}, "none"),
    some(clients.length, found.num_clients, "clients"),
    table([["Id", 1], ["User"], ["Address"], ["Transport"], ["Era"], ["Groups", 1]], clients)];
}
async function workers() {
  const found = state.workers || [];
  if (!found.length) return [el("p", {}, "One process does all the work.")];
  const rows = found.map(w => el("tr", {}, cell(w.worker + (w.worker === 1 ? " (streams, monitoring)" : "")), cell(w.pid, true),
    cell(w.alive ? "running" : "ended, or silent for " + span((Date.now() - w.time_ms) / 1000), false, w.alive ? "" : "bad"),
    cell(whole(w.connections), true), cell(whole(w.subscriptions), true), cell(short(rateOf("wi" + w.worker, w.in_msgs)) + "/s", true),
    cell(short(rateOf("wo" + w.worker, w.out_msgs)) + "/s", true), cell(whole(w.slow_consumers), true, w.slow_consumers ? "warn" : ""),
    cell(short(w.cpu_percent) + " %", true), cell(bytes(w.mem), true)));
  return [el("p", {}, "The other tabs are about worker 1."), table([["Worker"], ["Process", 1], ["State"], ["Connections", 1],
    ["Subscriptions", 1], ["In", 1], ["Out", 1], ["Slow consumers", 1], ["CPU", 1], ["Memory", 1]], rows)];
}
async function events() {
  const found = await get("/eventz?limit=100");
  const rows = (found.events || []).map(e => {
    const {kind, time, times, last, time_ns, last_ns, ...rest} = e;
    return el("tr", {}, cell((time || "").replace("T", " ").slice(0, 19)), cell(kind), cell(times || 1, true),
      cell(Object.entries(rest).map(([k, v]) => k + "=" + v).join(" ")));
  });
  return [rows.length ? table([["Time"], ["Event"], ["Times", 1], ["What"]], rows) : el("p", {}, "Nothing has happened.")];
}
const TABS = {streams, connections, accounts, cluster, iggy, workers, events};
let drawing = 0;
async function drawTab() {
  const mine = ++drawing, tab = state.tab;
  try {
    const parts = await TABS[tab]();
    if (mine === drawing) {
      const focused = document.activeElement && $("panel").contains(document.activeElement) ? document.activeElement.textContent : null;
      $("panel").replaceChildren(...parts);
      if (focused !== null) [...$("panel").querySelectorAll("button, select")].find(b => b.textContent === focused)?.focus();
    }
  } catch (error) {
    if (mine === drawing) $("panel").replaceChildren(el("p", {class: "bad"}, String(error.message || error)));
  }
}
function choose(name) {
  state.tab = name;
  state.size = 0;
  for (const button of $("tabs").children) {
    const chosen = button.id === "tab-" + name;
    button.setAttribute("aria-selected", chosen);
    button.tabIndex = chosen ? 0 : -1;
    if (chosen) $("panel").setAttribute("aria-labelledby", button.id);
  }
  drawTab();
}
for (const button of $("tabs").children) button.addEventListener("click", () => choose(button.id.slice(4)));
$("tabs").addEventListener("keydown", event => {
  const all = [...$("tabs").children], here = all.indexOf(document.activeElement);
  const to = {ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: all.length - 1}[event.key];
  if (to === undefined || here < 0) return;
  event.preventDefault();
  const next = all[(to + all.length) % all.length];
  next.focus();
  choose(next.id.slice(4));
});

async function look() {
  try {
    if (!document.hidden) {
      const old = state.server + state.started;
      await readHistory();
      if (state.looks % SLOW_EVERY === 0 || !state.varz || old !== state.server + state.started)
        [state.varz, state.health] = await Promise.all([get("/varz"), get("/healthz")]);
      drawHead(state.health);
      drawTiles();
      if (state.size <= MANY || state.looks % MANY_EVERY === 0) await drawTab();
      state.looks += 1;
    }
  } catch (error) {
    $("health").className = "pill bad";
    $("health").textContent = "no answer: " + (error.message || error);
  }
  setTimeout(look, EVERY);
}
look();
