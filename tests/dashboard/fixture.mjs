// What every test of the dashboard does: one browser, one gateway, and a list of all complaints of
// the page, which must stay empty.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { FakeGateway } from "./fake_gateway.mjs";
import { Traffic } from "./fake_traffic.mjs";
import { modules, open_browser } from "./browser.mjs";

export const PAGES = ["now", "refusals", "limit", "replicas", "memory", "what_if", "config"];
export const STATES = ["idle", "overloaded", "sick", "memory", "draining"];

// Of a page in any state; and of the verdict in a state.
const PAGE_WORDS = {
  now: "Verdict over time", refusals: "By reason and class", limit: "Would another limit be better?", replicas: "Replicas by p50",
  memory: "The ceiling and what it consists of", what_if: "First the past", config: "Waits for a restart",
};
const STATE_WORDS = {
  idle: ["Healthy", "Nothing is refused, and the service is as fast as usual"],
  overloaded: ["Overloaded", "More is asked than the service can do"],
  sick: ["Pressured", "One replica is out or much slower than the others"],
  memory: ["Overloaded", "Memory is short, so requests are refused"],
  draining: ["Healthy", "Nothing is refused"],
};

const PATIENCE_MS = 8_000;
let visits = 0;

export async function open_fixture(options = {}) {
  const gateway = await new FakeGateway({ tick_ms: 60, ...options }).start();
  const browser = await open_browser().catch(async (error) => {
    await gateway.stop();  // which would keep this process running
    throw error;
  });
  const f = { gateway, browser, page: browser.page, complaints: [] };
  browser.page.setDefaultTimeout(PATIENCE_MS);
  watch(f, browser.page);
  f.close = async () => {
    await browser.close();
    await gateway.stop();
  };
  return f;
}

/** A stream that the test cuts is not a complaint; all else is. */
function watch(f, page) {
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !/net::ERR_(INCOMPLETE_CHUNKED|CONNECTION_|EMPTY)|503|401/.test(message.text())) f.complaints.push(message.text());
  });
  page.on("pageerror", (error) => f.complaints.push(String(error.stack)));
  page.on("dialog", (dialog) => {
    f.complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
}

/** Loads `page` anew with the gateway in `state`. */
export async function visit(f, state, page, hash = page) {
  f.gateway.paused = false;
  f.gateway.traffic = new Traffic(state, f.gateway.now);
  visits += 1;  // an address with another query is loaded anew
  await f.page.goto(`${f.gateway.url}/?visit=${visits}#${hash}`);
  await shown(f, page);
}

/** Changes the page as a click on its tab does. */
export async function turn_to(f, page) {
  await f.page.locator(`.tabs a[href="#${page}"]`).click();
  await shown(f, page);
}

export async function shown(f, page) {
  await f.page.locator("#verdict[data-state]").waitFor();
  await f.page.locator("main").getByText(PAGE_WORDS[page], { exact: false }).first().waitFor();
}

export function text_of(f, selector) {
  return f.page.locator(selector).innerText();
}

export async function no_complaints(f) {
  assert.deepEqual(f.complaints, []);
}

/** Elements that stick out of the page on the right; the page itself must not scroll sideways. */
export async function sideways(f) {
  return f.page.evaluate(() => {
    const root = document.scrollingElement;
    if (root.scrollWidth <= innerWidth) return [];
    return [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 5)
      .map((e) => `${e.tagName}.${e.getAttribute("class")}`);
  });
}

const axe_source = () => readFileSync(modules().resolve("axe-core/axe.min.js"), "utf8");

/** What axe-core finds wrong, in short. */
export async function axe(f) {
  await f.page.evaluate(axe_source());
  return f.page.evaluate(async () => {
    const { violations } = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
    return violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target.join(" ")} (${n.failureSummary.split("\n")[1]?.trim()})`).join("; ")}`);
  });
}

/** Waits until `what()` is true; fails after a while. */
export async function until(what, words) {
  const end = Date.now() + PATIENCE_MS;
  while (!await what()) {
    assert.ok(Date.now() < end, `not within ${PATIENCE_MS} ms: ${words}`);
    await new Promise((done) => setTimeout(done, 15));
  }
}

/** Until the gateway has sent `n` more ticks. */
export function ticks(f, n) {
  const end = f.gateway.now + n;
  return until(() => f.gateway.now >= end, `${n} ticks`);
}

/** How many elements were added to the page while `work` ran. */
export async function elements_made(f, work) {
  await f.page.evaluate(() => {
    window.made = 0;
    window.makes = new MutationObserver((changes) => {
      for (const change of changes) for (const node of change.addedNodes) if (node.nodeType === Node.ELEMENT_NODE) window.made += 1;
    });
    window.makes.observe(document, { subtree: true, childList: true });
  });
  await work();
  return f.page.evaluate(() => {
    window.makes.disconnect();
    return window.made;
  });
}

export async function look(f, width, scheme) {
  await f.page.setViewportSize({ width, height: 900 });
  await f.page.emulateMedia({ colorScheme: scheme });
}

/** The verdict of `state`, the content of `page`, and nothing that sticks out. */
export async function tells_verdict(f, state, page, words_of_page = PAGE_WORDS[page]) {
  const verdict = await text_of(f, "#verdict");
  for (const words of STATE_WORDS[state]) assert.ok(verdict.includes(words), `${page}: ${verdict}`);
  assert.ok((await text_of(f, "#main")).includes(words_of_page), page);
  assert.deepEqual(await sideways(f), [], page);
}
