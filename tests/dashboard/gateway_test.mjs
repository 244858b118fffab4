// gateway_test.mjs WEIR: the dashboard of a real gateway, in front of replicas that 60 clients overload.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { open_browser } from "./browser.mjs";
import { ask_all_the_time, start_demo } from "./demo.mjs";
import { axe, PAGES, shown, sideways, text_of } from "./fixture.mjs";

const [WEIR] = process.argv.slice(2);
const CLIENTS = 60;

let demo;
let browser;
let stop_traffic;
const f = { complaints: [] };

before(async () => {
  demo = await start_demo(WEIR);
  f.admin = demo.admin;
  stop_traffic = ask_all_the_time(demo.gateway, CLIENTS);
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
    assert.match(await text_of(f, "#verdict"), /Overloaded[\s\S]*Do now/, page);
    assert.deepEqual(await axe(f), [], page);
    await f.page.setViewportSize({ width: 360, height: 800 });
    assert.deepEqual(await sideways(f), [], page);
    await f.page.setViewportSize({ width: 1280, height: 900 });
  }
  assert.deepEqual(f.complaints, []);
});

test("each page has what the gateway knows", async () => {
  const wanted = {
    now: /Last minute[\s\S]*127\.0\.0\.1|demo|app/, refusals: /refused over the last ten seconds[\s\S]*overload/, limit: /Least and most[\s\S]*in flight/,
    replicas: /1 to 3 of 3/, memory: /MiB at most/, config: /\[admission/,
  };
  for (const [page, words] of Object.entries(wanted)) {
    await f.page.locator(`.tabs a[href="#${page}"]`).click();
    await f.page.waitForFunction(([source]) => new RegExp(source).test(document.querySelector("main").innerText), [words.source], { timeout: 15_000 });
  }
  assert.deepEqual(f.complaints, []);
});

test("a gateway that ends is noticed", async () => {
  demo.process.kill("SIGKILL");
  await f.page.getByRole("alert").getByText(/no data for \d+ s/).waitFor();
  assert.ok((await text_of(f, "#verdict")).length > 50, "the last that was known stays");
});
