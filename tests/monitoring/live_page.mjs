// Runs the live page's script on a small document of our own, against a running broker: argv is its URL. Prints what a
// reader of each tab would see, as JSON. A real browser does more (layout, styles); this is the script as it is.
import {readFile} from "node:fs/promises";
import vm from "node:vm";

class Node {
  constructor(name) { Object.assign(this, {name, attributes: {}, children: [], listeners: {}, dataset: {}, own: null, className: ""}); }
  get id() { return this.attributes.id; }
  setAttribute(key, value) { this.attributes[key] = String(value); }
  append(...parts) { this.children.push(...parts); }
  replaceChildren(...parts) { this.own = null; this.children = parts; }
  addEventListener(kind, called) { (this.listeners[kind] ??= []).push(called); }
  fire(kind, event = {}) { for (const called of this.listeners[kind] || []) called({preventDefault() {}, ...event}); }
  contains(other) { return this === other || this.children.some(child => child.contains?.(other)); }
  querySelectorAll() { return this.all(node => ["button", "select"].includes(node.name)); }
  all(wanted) { return [...(wanted(this) ? [this] : []), ...this.children.flatMap(child => child.all?.(wanted) ?? [])]; }
  focus() { document.activeElement = this; }
  get textContent() { return this.own ?? this.children.map(child => child.textContent).join(" "); }
  set textContent(text) { this.own = text; this.children = []; }
}
class Text extends Node { constructor(text) { super("#text"); this.own = text; } }

const url = new URL(process.argv[2]);
const html = await (await fetch(url)).text();
const root = new Node("html");
root.dataset.base = /data-base="([^"]*)"/.exec(html)[1];
const found = {};
for (const [, name, attributes] of html.matchAll(/<(\w+) ([^>]*id="[^>]*)>/g)) {
  const node = new Node(name);
  for (const [, key, value] of attributes.matchAll(/([\w-]+)="([^"]*)"/g)) node.setAttribute(key, value);
  found[node.id] = node;
  if (name === "button") found.tabs.append(node);
}
const document = {documentElement: root, hidden: false, title: "", activeElement: null, getElementById: id => found[id],
  createElement: name => new Node(name), createElementNS: (_, name) => new Node(name), createTextNode: text => new Text(text)};
const source = await (await fetch(new URL(root.dataset.base + "/live.js", url))).text();
const timers = [];
vm.runInNewContext(source, {document, Node, Map, Math, Date, Number, Object, JSON, AbortSignal, Error, Promise, console,
  encodeURIComponent, fetch: path => fetch(new URL(path, url)), setTimeout: (called, ms) => timers.push(setTimeout(called, ms / 20))});

async function until(what, holds) {
  for (let n = 0; n < 600; n++) {
    if (holds()) return;
    await new Promise(go => setTimeout(go, 50));
  }
  throw new Error("never: " + what + "; the panel shows " + found.panel.textContent + "; health " + found.health.textContent);
}
await until("tiles", () => found.tiles.children.length > 8);
await until("streams", () => found.panel.textContent.includes("Stream"));
const seen = {health: found.health.textContent, facts: found.facts.textContent, title: document.title, tiles: found.tiles.textContent};
seen.streams = found.panel.textContent;
const opener = found.panel.all(node => node.attributes["aria-expanded"] === "false")[0];
if (opener) {
  opener.fire("click");
  await until("consumers", () => found.panel.textContent.includes("Waiting pulls"));
  seen.consumers = found.panel.textContent;
}
document.activeElement = found["tab-streams"];
for (const [tab, word] of [["connections", "sorted by"], ["accounts", "Slow consumers"], ["cluster", ""], ["iggy", ""], ["workers", ""], ["events", ""]]) {
  const before = found.panel.children;
  found.tabs.fire("keydown", {key: "ArrowRight"});
  await until(tab, () => found.panel.children !== before && found.panel.textContent.includes(word));
  seen[tab] = found.panel.textContent;
}
seen.selected = found.tabs.children.map(tab => tab.attributes["aria-selected"]);
timers.forEach(clearTimeout);
console.log(JSON.stringify(seen));
process.exit(0);
