// matrix_test.mjs FOLDER [all]: every page in every state: content, width, axe, and a picture in
// FOLDER that is not blank. Once each; with `all` in each width, light and dark.
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { axe, look, no_complaints, open_fixture, PAGES, sideways, STATES, tells_verdict, text_of, turn_to, visit } from "./fixture.mjs";
import { colours, read_png } from "./png.mjs";

const [FOLDER, WHICH] = process.argv.slice(2);
const PICTURE_WIDTHS = [360, 1280];
const SCHEMES = ["light", "dark"];
const GONE = "gone";
const NOTHING_YET = "The gateway has not yet told what belongs here.";

let f;
before(async () => {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  f = await open_fixture();
});
after(async () => { await f?.close(); });

const combinations = [];
[...STATES, GONE].forEach((state, i) => {
  const every = [360, 1280, 3840].flatMap((width) => SCHEMES.map((scheme) => ({ state, width, scheme })));
  const one = state === GONE ? [every[1], every[2]] : [every[i % 4]];
  combinations.push(...(WHICH === "all" ? every : one));
});

for (const combination of combinations) {
  const { state, width, scheme } = combination;
  test(`${state} at ${width} px, ${scheme}`, async () => {
    await look(f, width, scheme);
    await (state === GONE ? every_page_without_gateway(combination) : every_page(combination));
    await no_complaints(f);
  });
}

async function every_page(combination) {
  await visit(f, combination.state, "now");
  for (const page of PAGES) {
    if (page !== "now") await turn_to(f, page);
    await tells_verdict(f, combination.state, page);
    assert.deepEqual(await axe(f), [], page);
    await take_picture(page, combination);
  }
}

/** Pages that were seen before keep what they knew; in a dark room, nothing else was seen. */
async function every_page_without_gateway(combination) {
  await visit(f, "overloaded", "now");
  if (combination.scheme === "light") for (const page of PAGES.slice(1)) await turn_to(f, page);
  const port = f.gateway.port;
  await f.gateway.stop();
  try {
    await f.page.getByRole("alert").getByText(/no data for \d+ s/).waitFor();
    for (const page of PAGES) {
      const never_seen = page !== "now" && combination.scheme === "dark";
      if (never_seen) await turn_to_nothing(page);
      else await turn_to(f, page);
      assert.match(await text_of(f, "#banners"), /The gateway does not answer: what is below is old/, page);
      assert.match(await text_of(f, "#link"), /No data for \d+ s/, page);
      await tells_verdict(f, "overloaded", page, never_seen ? NOTHING_YET : undefined);
      assert.deepEqual(await axe(f), [], page);
      await take_picture(page, combination);
    }
  } finally {
    await f.gateway.start(port);
  }
}

async function turn_to_nothing(page) {
  await f.page.locator(`.tabs a[href="#${page}"]`).click();
  await f.page.locator(`.tabs a[href="#${page}"][aria-current="page"]`).waitFor();
  await f.page.waitForFunction((words) => document.querySelector("#main").innerText.includes(words), NOTHING_YET);
}

/** Of what is seen at first; the page is not one colour, and as light or dark as it was asked for. */
async function take_picture(page, { state, width, scheme }) {
  assert.deepEqual(await sideways(f), [], page);
  if (!PICTURE_WIDTHS.includes(width)) return;
  await f.page.evaluate(() => scrollTo(0, 0));
  const file = await f.page.screenshot({ animations: "disabled" });
  const name = `${page}-${state}-${width}-${scheme}.png`;
  writeFileSync(join(FOLDER, name), file);
  const picture = read_png(file);
  assert.deepEqual([picture.width, picture.height], [width, 900], name);
  const found = colours(picture);
  const pixels = width * 900;
  const common = found[0][1] / pixels;
  assert.ok(found.length > 60 && common < 0.97, `${name}: ${found.length} colours, ${common} of it one colour`);
  const light = found.reduce((sum, [colour, n]) => sum + n * ((colour >> 8) & 255), 0) / pixels;
  assert.ok(scheme === "light" ? light > 200 : light < 60, `${name} is ${light} bright`);
}
