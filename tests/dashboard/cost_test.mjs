// What one update costs the browser with a thousand replicas: script, style and layout, as the
// browser's own counters say. Judged as a stress test on a quiet machine. How many bytes an update
// has, tests/integration/live_bytes_test.py measures at a real gateway.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { open_fixture, ticks, turn_to, visit } from "./fixture.mjs";

const MEDIAN_MS_MAX = 8;
const UPDATES = 40;

let f;
before(async () => { f = await open_fixture({ tick_ms: 250 }); });
after(async () => { await f?.close(); });

async function spent_ms(session) {
  const { metrics } = await session.send("Performance.getMetrics");
  const of = (name) => metrics.find((m) => m.name === name).value;
  return 1000 * (of("ScriptDuration") + of("LayoutDuration") + of("RecalcStyleDuration"));
}

for (const page of ["now", "limit", "replicas"]) {
  test(`an update of ${page} costs at most ${MEDIAN_MS_MAX} ms at the median`, async (context) => {
    await visit(f, "many", "now");
    if (page !== "now") await turn_to(f, page);
    const session = await f.page.context().newCDPSession(f.page);
    await session.send("Performance.enable");
    await ticks(f, 4);
    const costs = [];
    let before = await spent_ms(session);
    for (let i = 0; i < UPDATES; ++i) {
      await ticks(f, 1);
      const now = await spent_ms(session);
      costs.push(now - before);
      before = now;
    }
    costs.sort((a, b) => a - b);
    const median = costs[UPDATES / 2];
    context.diagnostic(`${page}: median ${median.toFixed(2)} ms, largest ${costs.at(-1).toFixed(2)} ms per update`);
    assert.ok(median <= MEDIAN_MS_MAX, `${median} ms`);
  });
}
