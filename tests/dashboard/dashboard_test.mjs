// The dashboard in Debian's Chromium, against a gateway that plays each state. matrix_test.mjs has
// every page in every state.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { SCRIPT } from "./fake_traffic.mjs";
import { axe, elements_made, no_complaints, open_fixture, PAGES, shown, sideways, text_of, ticks, turn_to, until, visit } from "./fixture.mjs";

let f;
before(async () => { f = await open_fixture(); });
after(async () => { await f?.close(); });

test("what is wrong, where and what to do stand in one live region that is quiet while the verdict stays", async () => {
  await visit(f, "overloaded", "now");
  const region = await text_of(f, "#verdict [role=status]");
  for (const words of ["Overloaded", "checkout", "Clients\ncause", "Add capacity", "2.", "the usual 580/s"]) assert.ok(region.includes(words), words);
  await f.page.evaluate(() => {
    window.said = 0;
    new MutationObserver((changes) => {
      for (const { target } of changes) if (!(target.parentElement ?? target).closest("[aria-live=off]")) window.said += 1;
    }).observe(document.querySelector("#verdict [role=status]"), { subtree: true, childList: true, characterData: true });
  });
  await ticks(f, 6);
  assert.equal(await f.page.evaluate(() => window.said), 0);
  const { Traffic } = await import("./fake_traffic.mjs");
  f.gateway.traffic = new Traffic("memory", f.gateway.now);
  await f.page.getByText("Memory is short").waitFor();
  assert.ok(await f.page.evaluate(() => window.said) > 0);
});

test("the keyboard reaches pages, charts, tables and seconds", async () => {
  await visit(f, "overloaded", "now");
  const { keyboard } = f.page;
  await f.page.evaluate(() => { document.activeElement.blur(); scrollTo(0, 0); });
  await keyboard.press("Tab");
  assert.equal(await f.page.evaluate(() => document.activeElement.id), "skip");
  await keyboard.press("Enter");
  assert.equal(await f.page.evaluate(() => document.activeElement.id), "main");
  assert.ok(f.page.url().endsWith("#now"));
  const table = f.page.getByRole("button", { name: "As table" }).nth(1);
  await table.focus();
  await keyboard.press("Enter");
  assert.equal(await f.page.getByRole("button", { name: "As chart" }).getAttribute("aria-expanded"), "true");
  assert.ok(await f.page.locator("figure table tr:visible").count() > 20);
  const slider = f.page.getByRole("slider");
  await slider.focus();
  await keyboard.press("ArrowLeft");
  await f.page.getByRole("button", { name: "Back to now" }).waitFor();
  assert.match(await slider.getAttribute("aria-valuetext"), /1 s ago/);
  await f.page.locator('.tabs a[href="#limit"]').focus();
  await keyboard.press("Enter");
  await shown(f, "limit");
  assert.equal(await f.page.locator('.tabs a[aria-current="page"]').innerText(), "Limit");
  const outlined = await f.page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.notEqual(outlined, "none", "the focus can be seen");
  await no_complaints(f);
});

test("names of clients, replicas and upstreams are text, whatever they contain", async () => {
  await visit(f, "hostile", "now");
  for (const page of PAGES) {
    if (page !== "now") await turn_to(f, page);
    await ticks(f, 2);
    assert.equal(await f.page.evaluate(() => document.querySelectorAll("main script, main img, header script, #verdict script, #verdict img").length), 0, page);
  }
  await turn_to(f, "replicas");
  assert.ok((await text_of(f, "#main")).includes(`${SCRIPT}:80`));
  await turn_to(f, "refusals");
  assert.ok((await text_of(f, "#main")).includes(SCRIPT));
  assert.ok((await text_of(f, "header")).includes(SCRIPT));
  await no_complaints(f);
});

test("the stream is closed while the tab is hidden, and one is open while it is seen", async () => {
  await visit(f, "idle", "now");
  const hide = (state) => f.page.evaluate((value) => {
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => value });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
  assert.equal(f.gateway.watchers.size, 1);
  await hide("hidden");
  await until(() => f.gateway.watchers.size === 0, "no stream");
  const opened = f.gateway.opened;
  await hide("visible");
  await until(() => f.gateway.watchers.size === 1, "a stream");
  assert.equal(f.gateway.opened, opened + 1);
  for (const page of PAGES.slice(1, 4)) await turn_to(f, page);
  await ticks(f, 2);
  assert.equal(f.gateway.watchers.size, 1, "a page that is left closes its stream");
});

test("a gateway that is gone makes the page grey, says since when, and is found again", async (context) => {
  await visit(f, "overloaded", "now");
  const port = f.gateway.port;
  await f.gateway.stop();
  context.after(() => f.gateway.server.listening || f.gateway.start(port));
  await f.page.getByRole("alert").getByText(/no data for \d+ s/).waitFor();
  assert.equal(await f.page.locator("body").getAttribute("data-old"), "");
  assert.match(await text_of(f, "#link"), /No data for \d+ s/);
  assert.match(await f.page.evaluate(() => getComputedStyle(document.querySelector(".page")).filter), /grayscale/);
  assert.ok((await text_of(f, "#verdict")).includes("More is asked"), "what was known stays readable");
  assert.deepEqual(await axe(f), []);
  await f.page.setViewportSize({ width: 360, height: 800 });
  assert.deepEqual(await sideways(f), []);
  await f.page.setViewportSize({ width: 1280, height: 900 });
  await f.gateway.start(port);
  await f.page.getByRole("button", { name: "Try now" }).click();
  await f.page.locator("#link[data-link=live]").waitFor();
  assert.equal(await f.page.getByRole("alert").count(), 0);
  await no_complaints(f);
});

test("a stream that breaks again and again is opened with growing pauses", async () => {
  await visit(f, "idle", "now");
  const pauses = await f.page.evaluate(async () => {
    const { Stream } = await import("/dashboard/stream.js");
    const real = { source: window.EventSource, timeout: window.setTimeout, interval: window.setInterval };
    const seen = [];
    const sources = [];
    window.EventSource = class extends EventTarget {
      constructor() { super(); sources.push(this); }
      close() {}
    };
    window.setInterval = () => 0;
    window.setTimeout = (again, pause) => { seen.push(pause); again(); return 1; };
    const stream = new Stream({ hello() {}, tick() {}, link() {} }, () => 0.5);
    stream.open({ view: "now" });
    for (let i = 0; i < 7; ++i) sources[sources.length - 1].dispatchEvent(new Event("error"));
    stream.close();
    Object.assign(window, { EventSource: real.source, setTimeout: real.timeout, setInterval: real.interval });
    return seen;
  });
  assert.deepEqual(pauses, [500, 1000, 2000, 4000, 8000, 15000, 15000]);
});

test("a gateway that comes back full is told from one that is gone", async (context) => {
  await visit(f, "idle", "now");
  const port = f.gateway.port;
  await f.gateway.stop();
  context.after(() => { f.gateway.full = false; });
  await f.page.getByRole("alert").getByText("does not answer").waitFor();
  await until(() => f.page.evaluate(() => performance.getEntriesByType("resource").filter((e) => e.name.includes("/live") && e.initiatorType === "fetch").length > 0), "asked why");
  f.gateway.full = true;
  await f.gateway.start(port);
  await f.page.getByRole("button", { name: "Try now" }).click();
  await f.page.getByRole("alert").getByText("eight others watch it").waitFor();
  f.gateway.full = false;
  await f.page.getByRole("button", { name: "Try now" }).click();
  await f.page.locator("#link[data-link=live]").waitFor();
});

test("the ninth watcher reads why it sees nothing", async () => {
  await f.page.goto("about:blank");
  await until(() => f.gateway.watchers.size === 0, "no stream");
  const others = Array.from({ length: 8 }, () => request(`${f.gateway.url}/live`, { agent: false }).on("error", () => {}));
  await Promise.all(others.map((r) => new Promise((done) => { r.on("response", (answer) => { answer.resume(); done(); }); r.end(); })));
  await f.page.goto(`${f.gateway.url}/#now`);
  await f.page.getByRole("alert").getByText("eight others watch it").waitFor();
  for (const other of others) other.destroy();
  await f.page.locator("#link[data-link=live]").waitFor();
});

test("updates create no elements, and a thousand replicas are fifty rows", async () => {
  await visit(f, "many", "replicas");
  assert.equal(await f.page.locator("main .table tr:visible th[scope=row]").count(), 50);
  for (const page of ["replicas", "now", "refusals", "limit", "memory"]) {
    if (page !== "replicas") await turn_to(f, page);
    await ticks(f, 3);
    assert.equal(await elements_made(f, () => ticks(f, 8)), 0, page);
  }
  const bytes = f.gateway.bytes;
  await turn_to(f, "replicas");
  await ticks(f, 2);
  const hello = f.gateway.bytes - bytes;
  assert.ok(hello < 120_000, `${hello} bytes to open`);
});

test("replicas are sorted, filtered and paged by the gateway", async () => {
  await visit(f, "many", "replicas");
  await f.page.getByRole("button", { name: "Next" }).click();
  await f.page.getByText("51 to 100 of 1,000").waitFor();
  await f.page.getByLabel("Sort by").selectOption("name");
  await f.page.getByText("1 to 50 of 1,000").waitFor();
  await f.page.getByLabel("Only bad").check();
  await f.page.getByText("1 to 3 of 3").waitFor();
  await f.page.getByLabel("Only bad").uncheck();
  await f.page.getByLabel("Filter").fill("10.0.3.");
  await f.page.getByText("1 to 50 of 232").waitFor();
  await no_complaints(f);
});

test("the operator chooses the upstream of the charts", async () => {
  await visit(f, "overloaded", "now");
  await f.page.getByLabel("Upstream", { exact: true }).selectOption("reports");
  await f.page.locator("h2.chart-of", { hasText: "reports" }).waitFor();
  assert.deepEqual([...f.gateway.watchers].map((w) => w.upstream), ["reports"]);
});

test("actions need the mode, the token, a preview and a confirmation", async () => {
  await visit(f, "sick", "replicas");
  assert.equal(await f.page.getByRole("button", { name: /Drain|Undrain/ }).count(), 0, "actions are off");
  f.gateway.actions = "token";
  await visit(f, "sick", "now", "token=secret");
  assert.ok(!f.page.url().includes("secret"), f.page.url());
  await turn_to(f, "replicas");
  await f.page.getByRole("row", { name: /10\.0\.0\.2:80/ }).getByRole("button", { name: "Drain" }).click();
  const dialog = f.page.getByRole("dialog");
  await dialog.getByText("2 of 3 remain").waitFor();
  assert.deepEqual(await axe(f), []);
  await dialog.getByRole("button", { name: "Drain" }).click();
  await dialog.waitFor({ state: "hidden" });
  const body = { upstream: "checkout", endpoint: "10.0.0.2:80", for_s: 900 };
  assert.deepEqual(f.gateway.posts.map((p) => [p.path, p.authorization, p.type, p.body]), [
    ["/actions/drain", "Bearer secret", "application/json", { ...body, dry_run: true }], ["/actions/drain", "Bearer secret", "application/json", body]]);
  await f.page.getByRole("row", { name: /10\.0\.0\.1:80/ }).getByRole("button", { name: "Undrain" }).click();
  await dialog.getByRole("button", { name: "Undrain" }).waitFor();
  await f.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
  assert.equal(f.gateway.posts.filter((p) => p.path === "/actions/undrain" && !p.body.dry_run).length, 0);
  f.gateway.actions = "off";
  await no_complaints(f);
});

test("a token that is wrong is asked for again", async () => {
  f.gateway.actions = "token";
  await visit(f, "overloaded", "limit", "limit");
  await f.page.getByRole("button", { name: "Cap this limit…" }).click();
  const dialog = f.page.getByRole("dialog");
  await dialog.getByLabel(/Token/).fill("wrong");
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByText("the token is not right").waitFor();
  assert.equal(await dialog.getByLabel(/Token/).inputValue(), "");
  f.gateway.actions = "off";
});

test("an override stands above every page with the time that is left", async () => {
  await visit(f, "draining", "now");
  for (const page of PAGES) {
    if (page !== "now") await turn_to(f, page);
    const banners = await text_of(f, "#banners");
    assert.match(banners, /drain: checkout 10\.0\.0\.1:80\s+ends in 1\d min/, page);
    assert.ok(banners.includes("Draining"), page);
  }
});

test("a change of settings becomes a command and a diff", async () => {
  await visit(f, "idle", "what_if");
  await f.page.getByLabel("Setting").first().fill("admission.limit.max_limit");
  await f.page.getByLabel("New value").first().fill("48");
  await f.page.getByLabel("Requests that it serves at once").fill("24");
  assert.ok((await text_of(f, ".change .note >> nth=0")).includes("now 1024"));
  const command = await text_of(f, ".copy-box >> nth=0 >> code");
  assert.equal(command, `weir replay ${f.gateway.url} \\\n  --set admission.limit.max_limit=48 \\\n  --workers 24`);
  assert.equal(await text_of(f, ".copy-box >> nth=1 >> code"), " [admission.limit]\n-max_limit = 1024\n+max_limit = 48");
  await f.page.getByLabel("Setting").first().fill("server.max_connections");
  assert.ok((await text_of(f, ".change .note >> nth=0")).includes("now 1536; no replay can tell"));
  assert.ok(!(await text_of(f, ".copy-box >> nth=0 >> code")).includes("--set"));
});

test("one request is explained by the numbers of its time", async () => {
  await visit(f, "overloaded", "refusals");
  await f.page.getByRole("button", { name: /f4c19d/ }).first().click();
  await f.page.locator(".answer").getByText("then in flight").waitFor();
});

test("numbers, gaps, axes and settings are as they should be", async () => {
  await visit(f, "idle", "now");
  const found = await f.page.evaluate(async () => {
    const { num, ms, bytes, duration, percent, times } = await import("/dashboard/format.js");
    const { History, runs } = await import("/dashboard/history.js");
    const { round_up, line_path, area_path } = await import("/dashboard/scale.js");
    const { diff, literal, shell_word, settings } = await import("/dashboard/toml.js");
    const { ReplicaRows } = await import("/dashboard/replica_rows.js");
    const history = new History();
    history.reset({ columns: ["a", "cause"], rows: [[1, "fine"], [2, "fine"]], from: 100, step: 1 });
    history.push(104, [5, "demand"]);
    history.push(104, [6, "demand"]);
    const window = history.window(7);
    const at = window.at("a").map(String);
    const causes = runs(window.at("cause"));
    for (let t = 105; t < 2000; ++t) history.push(t, [t, "fine"]);
    const { Model } = await import("/dashboard/model.js");
    const rows = new ReplicaRows();
    const sparks = [[[7, 3, false, [0, 3]]], [], [[7, 9, false, null]], [[7, 9, true, null]], []].map((sent) => {
      rows.take({ columns: ["id", "p50_ms", "quiet", "spark"], rows: sent, order: [7] });
      return rows.get(7).spark.map(String).join(" ");
    });
    const model = new Model();
    model.on_hello({ now: 100, spark: { app: { offered: [1, 2], refused: [0, 1] } } });
    for (const now of [100, 101]) model.on_tick({ now, upstreams: [{ name: "app", offered: 2 * (now - 99), refused: 1 }] });
    const { TimeRow } = await import("/dashboard/time_row.js");
    const { move_words } = await import("/dashboard/page_limit.js");
    const { evidence } = await import("/dashboard/verdict_words.js");
    const row = new TimeRow([]);
    const shows = (seconds) => row.update({ rows: { length: seconds }, end: 0, window: (n) => n });
    const spans = [40, 61, 301].map(shows);
    row.choose(60);
    spans.push(shows(900));
    const replicas_note = (cause, replicas_open) => evidence({ verdict: { cause, upstream: "a" }, upstreams: [{ name: "a", replicas: 3, replicas_open }] })[4].note;
    return {
      spans, moves: [[4, 8, "grow"], [8, 4, "queueing"], [8, 4, "grow"]].map(([from, to, reason]) => move_words({ from, to, reason })),
      notes: [replicas_note("demand", 3), replicas_note("sick_replica", 3), replicas_note("sick_replica", 2)],
      num: [0, 0.414, 4.2, 612, 999.6, 1260, 12600, 1.26e6, null, NaN].map(num), ms: [0.41, 23, 1500, 90000].map(ms), bytes: [512, 1536, 532676608].map(bytes),
      duration: [41, 250, 240, 5400, 90000].map(duration), percent: [0.41, 0.004, 1].map(percent), times: [2.17, 12].map(times),
      at, runs: causes, length: history.rows.length,
      top: [0, 3, 61, 1330].map(round_up), line: line_path([1, NaN, 2, 3], (i) => i, (v) => v), area: area_path([0, 0], [1, 2], (i) => i, (v) => v),
      diff: diff('[[route]]\nx = 1\n[a]\nb = "c # d" # e\n', [["a.b", "z"], ["a.n", "5"], ["route[0].x", "true"]]), words: [shell_word("a=b"), shell_word("a b'c")],
      literals: ["5", "true", "auto", '"x"', "[1]"].map(literal), settings: settings("a = 1\n[s]\nk = [1] # c").map((s) => [s.section, s.key, s.value]),
      sparks, offered: model.spark.get("app").offered,
    };
  });
  assert.deepEqual(found, {
    spans: [60, 300, 900, 60],  // what is known, until the operator chooses
    moves: ["↑ no queue, and the limit was used", "↓ latency shows a queue", "↓ in several steps; the last: no queue, and the limit was used"],
    notes: ["all", "one is slow", "1 out"],
    num: ["0", "0.41", "4.2", "612", "1,000", "1,260", "12.6k", "1.26M", "–", "–"], ms: ["0.41 ms", "23 ms", "1.5 s", "1.5 min"], bytes: ["512 B", "1.5 KiB", "508.0 MiB"],
    duration: ["41 s", "4 min 10 s", "4 min", "1 h 30 min", "1 d 1 h"], percent: ["41 %", "0.4 %", "100 %"], times: ["2.2 ×", "12 ×"],
    at: ["NaN", "NaN", "1", "2", "NaN", "NaN", "6"], runs: [[2, 3, "fine"], [6, 6, "demand"]], length: 900,
    top: [1, 3.2, 80, 1600], line: "M0 1M2 2L3 3", area: "M0 1L1 2L1 0L0 0Z",
    diff: ' [a]\n-b = "c # d"\n+b = "z"\n+n = 5\n [route]\n-x = 1\n+x = true', words: ["a=b", "'a b'\\''c'"],
    literals: ["5", "true", '"auto"', '"x"', "[1]"], settings: [["", "a", "1"], ["s", "k", "[1]"]],
    // The first line of a replica, and the last minute in hello, end with the second in which they come.
    sparks: ["NaN 3", "NaN 3 3", "NaN 3 3 9", "NaN 3 3 9 NaN", "NaN 3 3 9 NaN NaN"], offered: [1, 2, 4],
  });
});

test("the dashboard is small and loads nothing from elsewhere", () => {
  const folder = fileURLToPath(new URL("../../dashboard/", import.meta.url));
  let raw = 0;
  let zipped = 0;
  for (const name of readdirSync(folder)) {
    const content = readFileSync(folder + name);
    raw += content.length;
    zipped += gzipSync(content).length;
    const foreign = content.toString().match(/https?:\/\/(?!www\.w3\.org\/2000\/svg)[^\s"'`]*/g);
    assert.equal(foreign, null, name);
    assert.ok(!/innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|\bstyle="/.test(content), name);
  }
  assert.ok(raw < 160_000 && zipped < 60_000, `${raw} bytes, ${zipped} zipped`);
});
