// gateway_test.mjs WEIR: the dashboard of a real gateway, in front of replicas that 150 clients overload.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { open_browser } from "./browser.mjs";
import { ask_all_the_time, start_demo } from "./demo.mjs";
import { axe, PAGES, shown, sideways, text_of, until } from "./fixture.mjs";

const [WEIR] = process.argv.slice(2);
const CLIENTS = 150;
const CALM_CLIENTS = 4;

let demo;
let browser;
let stop_traffic;
const f = { complaints: [] };

before(async () => {
  demo = await start_demo(WEIR);
  f.admin = demo.admin;
  // First a calm time, from which the gateway knows what is usual.
  stop_traffic = ask_all_the_time(demo.gateway, CALM_CLIENTS);
  await until(async () => (await (await fetch(`${demo.admin}/stats`)).json()).requests.answered > 500, "500 answers");
  const stop_calm = stop_traffic;
  const stop_rush = ask_all_the_time(demo.gateway, CLIENTS);
  stop_traffic = () => { stop_calm(); stop_rush(); };
  browser = await open_browser();
  f.page = browser.page;
  f.page.on("console", (m) => { if (["error", "warning"].includes(m.type())) f.complaints.push(m.text()); });
  f.page.on("pageerror", (e) => f.complaints.push(String(e.stack)));
});

after(async () => {
  stop_traffic?.();
  await browser?.close();
  await demo?.end();
});

test("an overloaded gateway says so within seconds, on every page", async () => {
  await f.page.goto(`${f.admin}/#now`);
  await shown(f, "now");
  await f.page.locator('#verdict[data-state="OVERLOADED"]').waitFor({ timeout: 20_000 });
  for (const page of PAGES) {
    await f.page.locator(`.tabs a[href="#${page}"]`).click();
    await shown(f, page);
    // On a busy machine the clients pause now and then, and so does the overload.
    await f.page.waitForFunction(() => /Overloaded[\s\S]*Do now/.test(document.querySelector("#verdict").innerText), null, { timeout: 20_000 });
    assert.deepEqual(await axe(f), [], page);
    await f.page.setViewportSize({ width: 360, height: 800 });
    assert.deepEqual(await sideways(f), [], page);
    await f.page.setViewportSize({ width: 1280, height: 900 });
  }
  assert.deepEqual(f.complaints, []);
});

test("each page has what the gateway knows", async () => {
  const wanted = {
    now: /Last minute[\s\S]*replicas[\s\S]*Requests per second/, refusals: /refused over the last ten seconds[\s\S]*overload/, limit: /Least and most[\s\S]*in flight/,
    replicas: /1 to 3 of 3/, memory: /MiB at most/, config: /\[admission/,
  };
  for (const [page, words] of Object.entries(wanted)) {
    await f.page.locator(`.tabs a[href="#${page}"]`).click();
    await f.page.waitForFunction(([source]) => new RegExp(source).test(document.querySelector("main").innerText), [words.source], { timeout: 30_000 })
      .catch(async () => assert.fail(`${page} has no ${words}: ${await text_of(f, "main")}`));
  }
  assert.deepEqual(f.complaints, []);
});

test("what the page What if suggests is a command that works, and a configuration that is valid", async (context) => {
  const values = { "admission.limit.max_limit": "48", "admission.limit.min_limit": "200", "admission.limit.policy": "aimd", "admission.max_concurrent": "64",
    "admission.waiting_max": "10", "actors.inflight_max": "4", "priority.low_limit": "8" };
  const { page } = f;
  const folder = mkdtempSync(join(tmpdir(), "weir-what-if-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const config = join(folder, "weir.toml");
  await page.locator('.tabs a[href="#what_if"]').click();
  const keys = await page.locator("#keys option").evaluateAll((options) => options.map((o) => o.value));
  assert.deepEqual(keys.sort(), Object.keys(values).sort());
  for (const [key, value] of Object.entries(values)) {
    await page.getByLabel("Setting").first().fill(key);
    await page.getByLabel("New value").first().fill(value);
    await page.waitForFunction(() => document.querySelector(".change .note").textContent.startsWith("now "));
    const command = await text_of(f, ".copy-box >> nth=0 >> code");
    assert.ok(command.includes(`--set ${key}=${value}`), command);
    // 0: the past fits and this is the forecast; 1: it does not. 2: the command is wrong.
    const done = await new Promise((ended) => execFile("sh", ["-c", command.replace(/^weir/, WEIR)], { timeout: 60_000 }, (error, out, words) => ended({ code: error?.code ?? 0, words })));
    assert.ok([0, 1].includes(done.code), `${command}: ${done.code} ${done.words}`);
    const added = (await text_of(f, ".copy-box >> nth=1 >> code")).split("\n").filter((line) => !line.startsWith("-")).map((line) => line.slice(1)).join("\n");
    writeFileSync(config, `${added}\n[[upstream]]\nname = "a"\nendpoints = ["127.0.0.1:1"]\n[[route]]\nupstream = "a"\n`);
    const check = spawnSync(WEIR, ["check", config]);
    assert.equal(check.status, 0, `${added}: ${check.stdout}${check.stderr}`);
  }
  assert.deepEqual(f.complaints, []);
});

test("a gateway that ends is noticed", async () => {
  demo.process.kill("SIGKILL");
  await f.page.getByRole("alert").getByText(/no data for \d+ s/).waitFor();
  assert.ok((await text_of(f, "#verdict")).length > 50, "the last that was known stays");
});
