// screenshots.mjs WEIR FOLDER: the pictures of the dashboard that README and guides show, made of an
// overloaded demo: ./dev screenshots
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { open_browser } from "./browser.mjs";
import { ask_all_the_time, start_demo } from "./demo.mjs";
import { small_png } from "./png.mjs";

const [weir, folder] = process.argv.slice(2);
const CALM_S = 25;
const OVERLOADED_S = 35;
const PICTURES = [
  { file: "dashboard-overloaded.png", page: "now", width: 1280, height: 985, scheme: "light" },
  { file: "dashboard-limit-dark.png", page: "limit", width: 1280, height: 1000, scheme: "dark" },
  { file: "dashboard-phone.png", page: "now", width: 360, height: 800, scheme: "light" },
];

const BYTES_MAX = 200_000;
// The third replica is slow for 5 s out of every 20 s, and then that is the verdict.
const VERDICT = "More is asked than the service can do";

const seconds = (n) => new Promise((done) => setTimeout(done, 1000 * n));

const demo = await start_demo(weir);
const calm = ask_all_the_time(demo.gateway, 4);
let rush = () => {};
let browser;
try {
  await seconds(CALM_S);
  rush = ask_all_the_time(demo.gateway, 60);
  browser = await open_browser();
  await browser.page.goto(`${demo.admin}/#now`);
  await browser.page.locator('#verdict[data-state="OVERLOADED"]').waitFor({ timeout: 20_000 });
  await seconds(OVERLOADED_S);
  for (const { file, page, width, height, scheme } of PICTURES) {
    await browser.page.setViewportSize({ width, height });
    await browser.page.emulateMedia({ colorScheme: scheme });
    await browser.page.locator(`.tabs a[href="#${page}"]`).click();
    await browser.page.getByRole("button", { name: "1 min", exact: true }).click();
    await browser.page.evaluate(() => scrollTo(0, 0));
    await seconds(3);
    await browser.page.locator("#verdict").getByText(VERDICT).waitFor({ timeout: 60_000 });
    const picture = small_png(await browser.page.screenshot());
    writeFileSync(join(folder, file), picture);
    if (picture.length > BYTES_MAX) throw new Error(`${file} has ${picture.length} bytes: make it smaller`);
  }
} finally {
  calm();
  rush();
  await browser?.close();
  await demo.end();
}
