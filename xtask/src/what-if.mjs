// Opens the what-if page in headless Chromium and uses it as people do: `cargo xtask pages --only what-if` runs this.
//
//     node what-if.mjs MODULES CHROMIUM PAGE.html RAIDLAB SHOTS
//
// On a desk and on a phone: moves controls and compares what the page shows, and its whole results document, with what
// RAIDLAB makes of the study that the page gives; looks for errors, requests, progress, runs that are cancelled, what is
// wrong with a study, what is cut off, and what axe-core finds. Exits 1 when there is a defect.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { accessible, cutOff, started } from "./browser.mjs";

const [modules, executablePath, file, raidlab, shots] = process.argv.slice(2);
const SIZES = [
  { name: "desk", viewport: { width: 1280, height: 900 } },
  { name: "phone", viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
];
const WIDTHS = [320, 390, 768, 1024, 1920];
// What is moved, one after the other, and the metric that comes first then.
const DESK = [
  [{}, "iops"],
  [{ level: "raid10", copies: "far 2", count: "6" }, "iops"],
  [{ pattern: "read", model: "ssd-nvme4-2tb", depth: "2" }, "mib_per_s"],
  [{ level: "raid6", rotation: "left-asymmetric", pattern: "write", chunk: "16", model: "nas-8tb-7200" }, "mib_per_s"],
  [{ pattern: "randrw", state: "degraded", processes: "8" }, "iops"],
  [{ level: "raid1+0", state: "healthy", host: "own" }, "iops"],
  [{ level: "single", pattern: "randwrite" }, "iops"],
];
const PHONE = [
  [{}, "iops"],
  [{ level: "raid1", state: "rebuilding", processes: "1", model: "ssd-sata-1tb" }, "iops"],
];

const place = mkdtempSync(join(tmpdir(), "raidlab-what-if-"));
const browser = await started(modules, executablePath);
const defects = [];
let compared = 0;

const settled = (page) => page.waitForFunction(() => ["done", "wrong"].includes(document.documentElement.dataset.state), null, { timeout: 600_000 });
// Moves controls as a hand does: what the page hears is the control's own event.
const move = async (page, values) => {
  await page.evaluate(() => { document.documentElement.dataset.state = "moved"; });
  for (const [name, value] of Object.entries(values)) {
    const control = page.locator(`#controls [name=${name}]`).first();
    const kind = await control.evaluate((one) => one.type);
    if (kind === "radio") await page.locator(`#controls label:has([value=${value}])`).click();
    else if (kind === "range") await control.fill(value);
    else await control.selectOption(value);
  }
  if (!Object.keys(values).length) await page.evaluate(() => document.getElementById("controls").dispatchEvent(new Event("input", { bubbles: true })));
  await settled(page);
};
const saved = async (page, at, what) => {
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".study").nth(at).locator(`[data-do=${what}]`).click()]);
  const path = join(place, download.suggestedFilename());
  await download.saveAs(path);
  return { path, text: readFileSync(path, "utf8") };
};
const number = (text) => Number(text.replace(/[\u202f\u00a0]/g, "").replace(/[^\d.].*$/, ""));
const shownOf = (page) => page.evaluate(() => Object.fromEntries([...document.querySelectorAll("#figures [data-metric]")].map((row) => [row.dataset.metric, [...row.querySelectorAll("td[data-head]")].map((cell) => cell.querySelector(".value")?.textContent)])));

// The page's document and figures are those of the command line, by the study and the command that the page gives.
const same = async (page, what) => {
  const count = await page.locator(".study").count();
  const shown = await shownOf(page);
  for (let at = 0; at < count; at += 1) {
    const study = await saved(page, at, "save-study");
    const results = (await saved(page, at, "save-results")).text;
    const command = await page.locator(".study").nth(at).locator("code").textContent();
    const words = command.split(" ").slice(2).map((word) => (word.endsWith(".toml") ? study.path : word));
    const run = spawnSync(raidlab, ["compare", ...words, "--no-store", "--quiet", "--json", "-"], { encoding: "utf8", maxBuffer: 1 << 28 });
    if (run.status !== 0) { defects.push(`${what}: ${command}: ${run.stderr}`); continue; }
    const { risk, ...expected } = JSON.parse(run.stdout);
    if (JSON.stringify(JSON.parse(results)) !== JSON.stringify(expected)) defects.push(`${what}: ${command} gives another document`);
    const own = expected.layouts.at(-1).name;
    for (const cell of expected.cells.filter((cell) => cell.layout === own && shown[cell.metric] && cell.unit !== "s" && at === 0)) {
      const value = number(shown[cell.metric][0]);
      // Three digits at least, of which the last is rounded.
      if (Math.abs(value - cell.median) > Math.max(0.005 * cell.median, 0)) defects.push(`${what}: ${cell.metric} ${value} is not ${cell.median}`);
      compared += 1;
    }
  }
  return shown;
};

const watched = async (options) => {
  const context = await browser.newContext({ ...options, acceptDownloads: true });
  // Where much else is built a page may take long.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) defects.push(`${options.name}: console: ${message.text()}`); });
  page.on("pageerror", (error) => defects.push(`${options.name}: script: ${error.message}`));
  const address = pathToFileURL(file).href;
  page.on("request", (request) => { if (request.url().split("#")[0] !== address && !request.url().startsWith("blob:")) defects.push(`${options.name}: request: ${request.url().slice(0, 200)}`); });
  await page.goto(address);
  await settled(page);
  return { context, page };
};
const shot = async (page, name) => {
  if (shots !== "-") await page.screenshot({ path: join(shots, `what-if-${name}.png`), fullPage: true });
};
const data = (page, name) => page.evaluate((key) => Number(document.documentElement.dataset[key] || 0), name);

// A run under way ends as soon as something is moved, and what is shown is of the last choice.
const cancelled = async (page) => {
  await move(page, { level: "raid5", pattern: "randread" });
  await page.evaluate(() => { document.documentElement.dataset.state = "moved"; });
  await page.locator("#controls label:has([value=rebuilding])").click();
  await page.waitForFunction(() => document.documentElement.dataset.state === "busy");
  const before = await data(page, "cancelled");
  await move(page, { state: "healthy", processes: "3" });
  if ((await data(page, "cancelled")) !== before + 1) defects.push("a run that nobody waits for is not cancelled");
  const { text } = await saved(page, 0, "save-study");
  if (!text.includes("processes = [3]") || !text.includes('states = ["healthy"]')) defects.push("what is shown is not of the last choice");
  await same(page, "after a cancelled run");
};
const wrong = async (page) => {
  await move(page, { level: "raid6", count: "3" });
  if ((await page.evaluate(() => document.documentElement.dataset.state)) !== "wrong") defects.push("raid6 of 3 drives is answered");
  const told = await page.locator("#count-error").textContent();
  if (!/raid6.*4/.test(told)) defects.push(`the control of drives says "${told}" of raid6 with 3`);
  if ((await page.locator("#count").getAttribute("aria-invalid")) !== "true") defects.push("the control that is wrong is not marked");
  await shot(page, "wrong");
  await move(page, { count: "4" });
  if ((await page.locator("#count-error").textContent()) !== "") defects.push("an error stays when it is mended");
};
const byKeyboard = async (page) => {
  const slider = page.locator("#processes");
  await slider.focus();
  const before = await page.locator("#processes-value").textContent();
  await page.keyboard.press("ArrowRight");
  if ((await page.locator("#processes-value").textContent()) === before) defects.push("an arrow key does not move a slider");
  await page.evaluate(() => { document.documentElement.dataset.state = "moved"; });
  await page.keyboard.press("ArrowLeft");
  await settled(page);
};
const pinned = async (page) => {
  await move(page, { level: "raid5", count: "4", model: "nas-8tb-7200", pattern: "randwrite", state: "healthy", host: "linux-6.12" });
  await page.locator("#pin").click();
  await move(page, { level: "raid10", copies: "near 2" });
  const shown = await same(page, "beside what is pinned");
  if (shown.iops.filter(Boolean).length !== 2) defects.push("what is pinned is not shown");
  const against = await page.locator("[data-metric=iops] .against").textContent();
  if (!/^\+\d+.*better/.test(against)) defects.push(`raid10 against raid5 in small writes: "${against}"`);
};
// What was chosen is in the address: whoever opens that sees the same.
const shared = async (page) => {
  const [address, figures] = [page.url(), await page.locator("#figures").textContent()];
  await page.goto("about:blank");
  await page.goto(address);
  await settled(page);
  if ((await page.locator("#figures").textContent()) !== figures) defects.push("the same address shows something else");
  await page.goto("about:blank");
  await page.goto(`${address.split("#")[0]}#level=%22%3Cimg%3E&count=999&processes=-1&pinned-level=raid5`);
  await settled(page);
  if ((await page.locator("#controls").evaluate((form) => form.elements.level.value)) !== "raid5") defects.push("an address with nonsense changes controls");
};
const looked = async (page, context, name) => {
  const own = page.viewportSize();
  for (const width of name === "desk" ? WIDTHS : [own.width]) {
    await page.setViewportSize({ width, height: own.height });
    for (const one of await page.evaluate(cutOff)) defects.push(`cut off at ${width}: ${one}`);
  }
  await page.setViewportSize(own);
  for (const one of await page.locator("details").all()) await one.evaluate((it) => { it.open = true; });
  defects.push(...(await accessible(context, page, modules)));
  await shot(page, `${name}-dark`);
  await page.emulateMedia({ colorScheme: "light" });
};

for (const options of SIZES) {
  const { context, page } = await watched(options);
  const cases = options.name === "desk" ? DESK : PHONE;
  for (const [values, first] of cases) {
    const what = `${options.name} ${JSON.stringify(values)}`;
    const told = await data(page, "told");
    await move(page, values);
    if ((await data(page, "told")) - told < 6) defects.push(`${what}: no progress`);
    const shown = await same(page, what);
    if (Object.keys(shown)[0] !== first) defects.push(`${what}: ${Object.keys(shown)[0]} stands first`);
  }
  await shot(page, options.name);
  if (options.name === "desk") {
    await cancelled(page);
    await wrong(page);
    await byKeyboard(page);
  }
  await pinned(page);
  await shot(page, `${options.name}-pinned`);
  await looked(page, context, options.name);
  await shared(page);
  await context.close();
}
await browser.close();
rmSync(place, { recursive: true });
console.log(`what-if: ${compared} figures as on the command line, ${defects.length ? "DEFECTS" : "good"}`);
for (const one of [...new Set(defects)].slice(0, 40)) console.log(`  ${one}`);
process.exit(defects.length ? 1 : 0);
