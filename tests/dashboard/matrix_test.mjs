// Every page in every state, wide and narrow, light and dark: content, width and axe.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axe, look, no_complaints, open_fixture, PAGES, STATES, tells_verdict, turn_to, visit } from "./fixture.mjs";

let f;
before(async () => { f = await open_fixture(); });
after(async () => { await f?.close(); });

for (const width of [360, 1280, 3840]) {
  for (const scheme of ["light", "dark"]) {
    for (const state of STATES) {
      test(`${state} at ${width} px, ${scheme}`, async () => {
        await look(f, width, scheme);
        await visit(f, state, "now");
        for (const page of PAGES) {
          if (page !== "now") await turn_to(f, page);
          await tells_verdict(f, state, page);
          assert.deepEqual(await axe(f), [], page);
        }
        await no_complaints(f);
      });
    }
  }
}
