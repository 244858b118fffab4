// actions_test.mjs WEIR: actions from the dashboard at a real gateway that wants a token.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { open_browser } from "./browser.mjs";
import { lines_of } from "./demo.mjs";
import { axe, shown, text_of } from "./fixture.mjs";

const [WEIR] = process.argv.slice(2);
const TOKEN = "ab".repeat(32);

const f = { complaints: [] };
const folder = mkdtempSync(join(tmpdir(), "weir-actions-"));
let origins;
let gateway;
let browser;

before(async () => {
  origins = await Promise.all([1, 2, 3].map(async () => {
    const server = createServer((_, response) => response.end("hello\n"));
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    return server;
  }));
  writeFileSync(join(folder, "token"), `${TOKEN}\n`, { mode: 0o600 });
  writeFileSync(join(folder, "weir.toml"), `[listen]
addresses = ["127.0.0.1:0"]
[admin]
listen = "127.0.0.1:0"
actions = "token"
token_file = "${join(folder, "token")}"
[[upstream]]
name = "app"
endpoints = [${origins.map((o) => `"127.0.0.1:${o.address().port}"`).join(", ")}]
[[route]]
upstream = "app"
`);
  gateway = spawn(WEIR, ["run", "--config", join(folder, "weir.toml")], { stdio: ["ignore", "pipe", "pipe"] });
  f.admin = `http://127.0.0.1:${await lines_of(gateway, /admin on .*:(\d+)/)}`;
  browser = await open_browser();
  f.page = browser.page;
  // A refused token is an answer 401, an action too soon 429: the browser also tells its console.
  f.page.on("console", (m) => { if (["error", "warning"].includes(m.type()) && !m.text().includes("401") && !m.text().includes("429")) f.complaints.push(m.text()); });
  f.page.on("pageerror", (e) => f.complaints.push(String(e.stack)));
});

after(async () => {
  await browser?.close();
  gateway?.kill("SIGKILL");
  for (const origin of origins) {
    origin.closeAllConnections();
    origin.close();
  }
  rmSync(folder, { recursive: true });
});

const endpoint = () => `127.0.0.1:${origins[1].address().port}`;
const row = () => f.page.getByRole("row", { name: new RegExp(endpoint()) });
const overrides = async () => (await (await fetch(`${f.admin}/overrides`)).json()).overrides.map((o) => [o.kind, o.endpoint]);

test("a wrong token is refused in the gateway's own words, and asked for again", async () => {
  await f.page.goto(`${f.admin}/#replicas`);
  await shown(f, "replicas");
  await row().getByRole("button", { name: "Drain" }).click();
  const dialog = f.page.getByRole("dialog");
  await dialog.getByLabel(/Token/).fill("cd".repeat(32));
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByText("this is not the token of admin.token_file", { exact: true }).waitFor();
  assert.equal(await dialog.getByLabel(/Token/).inputValue(), "");
  assert.deepEqual(await axe(f), []);
  assert.deepEqual(await overrides(), []);
});

test("with the right one an endpoint is drained after a preview, and undrained", async () => {
  const dialog = f.page.getByRole("dialog");
  await dialog.getByLabel(/Token/).fill(TOKEN);
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByText("2 of 3 remain").waitFor();
  assert.deepEqual(await overrides(), [], "a preview does nothing");
  await dialog.getByRole("button", { name: "Drain" }).click();
  await dialog.waitFor({ state: "hidden" });
  assert.deepEqual(await overrides(), [["drain", endpoint()]]);
  await row().getByText("Draining").waitFor();
  assert.match(await text_of(f, "#banners"), new RegExp(`drain: app ${endpoint()}\\s+ends in 1\\d min`));
  await row().getByRole("button", { name: "Undrain" }).click();
  await dialog.getByRole("button", { name: "Undrain" }).click();
  await dialog.waitFor({ state: "hidden" });
  assert.deepEqual(await overrides(), []);
  await row().getByText("Available").waitFor();
  await row().getByRole("button", { name: "Drain", exact: true }).waitFor();
  assert.deepEqual(f.complaints, []);
});

test("the token of the link is enough, and leaves the address", async () => {
  await f.page.goto("about:blank");
  await f.page.goto(`${f.admin}/#token=${TOKEN}`);
  await shown(f, "now");
  assert.ok(!f.page.url().includes(TOKEN), f.page.url());
  await f.page.locator('.tabs a[href="#replicas"]').click();
  await row().getByRole("button", { name: "Drain" }).click();
  await f.page.getByRole("dialog").getByText("2 of 3 remain").waitFor();
  assert.deepEqual(f.complaints, []);
});
