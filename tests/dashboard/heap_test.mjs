// heap_test.mjs [minutes]: a page that is left open does not grow. Updates come twenty times as
// fast as from a gateway, so ten minutes are more than three hours of watching.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { open_fixture, PAGES, ticks, turn_to, visit } from "./fixture.mjs";

const MINUTES = Number(process.argv[2] ?? 10);
const GROWTH_MAX = 1_000_000;

let f;
before(async () => { f = await open_fixture({ tick_ms: 50 }); });
after(async () => { await f?.close(); });

async function heap() {
  return f.page.evaluate(async () => {
    for (let i = 0; i < 3; ++i) gc();
    await new Promise((done) => setTimeout(done, 50));
    gc();
    return performance.memory.usedJSHeapSize;
  });
}

test(`the heap is flat for ${MINUTES} minutes of quick updates`, async (context) => {
  await visit(f, "many", "now");
  const turn = async () => {
    for (const page of PAGES) {
      await turn_to(f, page);
      await ticks(f, 40);
    }
  };
  await turn();
  await turn();
  const first = await heap();
  const end = Date.now() + MINUTES * 60_000;
  let last = first;
  while (Date.now() < end) {
    await turn();
    last = await heap();
  }
  context.diagnostic(`${first} bytes at first, ${last} at the end`);
  assert.ok(last - first < GROWTH_MAX, `${first} bytes became ${last}`);
});
