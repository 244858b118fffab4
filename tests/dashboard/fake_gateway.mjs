// A gateway's admin side without a gateway: serves the dashboard with its real content security
// policy and a stream as docs/design/live.md describes it. A test changes `state` and asks what
// happened; by hand: `node tests/dashboard/fake_gateway.mjs overloaded 8099`.
import { readFileSync, existsSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { Traffic } from "./fake_traffic.mjs";

const ASSETS = fileURLToPath(new URL("../../dashboard/", import.meta.url));
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" };
const HEADERS = {
  "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-store",
};
const WATCHERS_MAX = 8;

export class FakeGateway {
  constructor({ state = "idle", tick_ms = 1000, actions = "off" } = {}) {
    this.tick_ms = tick_ms;
    this.actions = actions;
    this.watchers = new Set();
    this.opened = 0;        // streams ever opened
    this.bytes = 0;         // sent in streams
    this.posts = [];
    this.full = false;      // as if there were eight watchers
    this.paused = false;    // streams stay open, nothing comes
    this.base = 1_790_000_900;
    this.now = this.base;
    this.become(state);
  }

  become(state) {
    this.traffic = new Traffic(state, this.now);
    this.cut();
  }

  /** Ends the streams, as a new gateway would; browsers come back. */
  cut() {
    for (const watcher of this.watchers) watcher.response.destroy();
    this.watchers.clear();
  }

  async start(port = 0) {
    this.server = createServer((request, response) => this.answer(request, response));
    await new Promise((done) => this.server.listen(port, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    this.timer = setInterval(() => this.tick(), this.tick_ms);
    return this;
  }

  async stop() {
    clearInterval(this.timer);
    this.cut();
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  /** As if the process were gone: connections are refused until `start(port)`. */
  get port() {
    return this.server.address().port;
  }

  tick() {
    this.now += 1;
    if (this.paused) return;
    for (const watcher of this.watchers) this.send_tick(watcher);
  }

  send(watcher, event, data) {
    const message = `event: ${event}\nid: ${this.now - this.base}\ndata: ${JSON.stringify(data)}\n\n`;
    this.bytes += message.length;
    watcher.response.write(message);
  }

  send_tick(watcher) {
    const { view, upstream, asked } = watcher;
    this.send(watcher, "tick", this.traffic.tick(view, upstream, this.now, watcher.first, asked));
    watcher.first = false;
  }

  answer(request, response) {
    const url = new URL(request.url, "http://gateway");
    if (request.method === "POST") return this.take_post(request, response, url.pathname);
    if (url.pathname === "/live") return this.open_stream(response, url.searchParams);
    if (url.pathname === "/healthz") return response.writeHead(200, HEADERS).end("ok\n");
    if (url.pathname === "/explain") {
      return response.writeHead(200, { ...HEADERS, "content-type": "application/json" })
        .end(JSON.stringify({ id: url.searchParams.get("id"), outcome: "refused", reason: "overload", class: "low", then: { in_flight: 44, limit: 44, waiting: 12 } }));
    }
    const name = url.pathname === "/" ? "index.html" : url.pathname.replace(/^\/dashboard\//, "");
    if (!/^[a-z0-9_]+\.(html|js|css|svg)$/.test(name) || !existsSync(ASSETS + name)) return response.writeHead(404, HEADERS).end();
    return response.writeHead(200, { ...HEADERS, "content-type": TYPES[name.split(".")[1]] }).end(readFileSync(ASSETS + name));
  }

  open_stream(response, query) {
    if (this.full || this.watchers.size >= WATCHERS_MAX) return response.writeHead(503, { ...HEADERS, "retry-after": "5" }).end("eight watchers\n");
    this.opened += 1;
    const view = query.get("view") ?? "now";
    const asked = { sort: query.get("sort") ?? "worst", filter: query.get("filter") ?? "", bad: query.get("bad") === "1", from: Number(query.get("from") ?? 0), rows: Number(query.get("rows") ?? 50), sent: new Set() };
    const watcher = { response, view, upstream: query.get("upstream") ?? "", asked, first: true };
    response.writeHead(200, { ...HEADERS, "content-type": "text/event-stream" });
    response.on("close", () => this.watchers.delete(watcher));
    this.watchers.add(watcher);
    this.send(watcher, "hello", this.traffic.hello(view, watcher.upstream, this.now, this.actions));
    return this.send_tick(watcher);
  }

  take_post(request, response, path) {
    let body = "";
    request.on("data", (part) => { body += part; });
    request.on("end", () => {
      const post = { path, authorization: request.headers.authorization, type: request.headers["content-type"], body: JSON.parse(body) };
      this.posts.push(post);
      if (post.authorization !== "Bearer secret") return response.writeHead(401, { ...HEADERS, "content-type": "application/json" }).end(JSON.stringify({ error: "the token is not right" }));
      return response.writeHead(200, { ...HEADERS, "content-type": "application/json" })
        .end(JSON.stringify({ preview: post.body.dry_run ? "2 of 3 remain: about 400/s, demand is 380/s" : "done", id: "o2" }));
    });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const gateway = await new FakeGateway({ state: process.argv[2] ?? "overloaded", actions: process.argv[4] ?? "off" }).start(Number(process.argv[3] ?? 0));
  console.log(gateway.url);
  process.stdin.resume().on("end", () => process.exit(0));
}
