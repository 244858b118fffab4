// Debian's Chromium, driven by playwright-core. WEIR_NODE_MODULES says where npm put it.
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--mute-audio", "--js-flags=--expose-gc"];

export function modules() {
  const folder = process.env.WEIR_NODE_MODULES;
  if (!folder) throw new Error("WEIR_NODE_MODULES is not set: run tests/dashboard/run.sh");
  return createRequire(join(folder, "package.json"));
}

/** A browser with a new empty profile: {context, page, close}. */
export async function open_browser(options = {}) {
  const { chromium } = modules()("playwright-core");
  const profile = mkdtempSync(join(tmpdir(), "weir-browser-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.WEIR_CHROMIUM ?? "/usr/bin/chromium", headless: true, args: ARGUMENTS, viewport: { width: 1280, height: 900 }, ...options,
  });
  const close = async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  };
  return { context, page: context.pages()[0] ?? await context.newPage(), close };
}
