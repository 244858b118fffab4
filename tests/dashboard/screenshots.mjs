// screenshots.mjs WEIR FOLDER: the pictures of the dashboard that README and guides show, made of an
// overloaded demo: run.sh BUILD_DIR screenshots.mjs BUILD_DIR/weir docs/images
import { join } from "node:path";
import { open_browser } from "./browser.mjs";
import { ask_all_the_time, start_demo } from "./demo.mjs";

const [weir, folder] = process.argv.slice(2);
const CALM_S = 25;
const OVERLOADED_S = 35;
const PICTURES = [
  { file: "dashboard-overloaded.png", page: "now", width: 1280, height: 1000, scheme: "light" },
  { file: "dashboard-limit-dark.png", page: "limit", width: 1280, height: 1000, scheme: "dark" },
  { file: "dashboard-phone.png", page: "now", width: 360, height: 800, scheme: "light" },
];

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
    await seconds(3);
    await browser.page.screenshot({ path: join(folder, file) });
  }
} finally {
  calm();
  rush();
  await browser?.close();
  await demo.end();
}
