// Opens pages in headless Chromium and uses them as people do: `cargo xtask pages` runs this.
//
//     node pages.mjs MODULES CHROMIUM SHOTS PAGE.html=FIGURE,FIGURE,... ...
//
// MODULES is a directory in which npm has put playwright-core and axe-core. SHOTS is a directory for pictures of the
// pages, or `-`. Prints a line for each page; exits 1 when one has a defect.

import { pathToFileURL } from "node:url";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { accessible, cutOff, started } from "./browser.mjs";

const [modules, executablePath, shots, ...pages] = process.argv.slice(2);
const WIDTHS = [420, 1024, 1920];
const SORTS = 9;
const browser = await started(modules, executablePath);
let failed = false;

// What a finger does on a phone: a tap shows a tooltip and one beside it hides it, rows open, buttons look closer.
const fingers = async (file, defects) => {
  const context = await browser.newContext({ viewport: { width: 420, height: 900 }, hasTouch: true, isMobile: true });
  const page = await context.newPage();
  page.on("pageerror", (error) => defects.push(`script, by touch: ${error.message}`));
  await page.goto(pathToFileURL(file).href);
  await page.waitForSelector("html[data-ready=yes]");
  const tip = page.locator("#tip");
  for (const [what, marks] of [["a figure", "svg.fig [role=img]"], ["the table", "td[data-tip]"]]) {
    const mark = page.locator(marks).first();
    if (!(await mark.count())) continue;
    // Marks may lie on one another; the finger then meets the upper one.
    await mark.tap({ force: true });
    if (!(await tip.isVisible())) defects.push(`no tooltip by touch in ${what}`);
    const box = await tip.boundingBox();
    if (box && (box.x < 0 || box.x + box.width > 420)) defects.push(`the tooltip in ${what} is cut off on a phone`);
    await page.locator("h1").first().tap();
    if (await tip.isVisible()) defects.push(`the tooltip in ${what} stays`);
  }
  const row = page.locator("details[data-row]").first();
  if (await row.count()) {
    await row.evaluate((one) => { one.parentElement.open = true; });
    await row.locator("summary").tap();
    await page.waitForFunction(() => document.querySelector("details[data-row] svg.fig"));
  }
  const timed = page.locator("details.figure:has(svg.zoom)").first();
  if (await timed.count()) {
    await timed.locator("summary").first().tap();
    const view = () => timed.locator("svg.zoom").first().getAttribute("viewBox");
    const before = await view();
    await timed.locator(".zooms button").first().tap();
    if ((await view()) === before) defects.push("closer changes nothing by touch");
  }
  await context.close();
};

const check = async (argument) => {
  const [file, wanted] = argument.split("=");
  const figures = wanted ? wanted.split(",") : [];
  const defects = [];
  const context = await browser.newContext({ viewport: { width: 1024, height: 900 }, acceptDownloads: true, bypassCSP: false });
  const page = await context.newPage();
  page.on("console", (message) => { if (message.type() === "error" || message.type() === "warning") defects.push(`console: ${message.text()}`); });
  page.on("pageerror", (error) => defects.push(`script: ${error.message}`));
  const address = pathToFileURL(file).href;
  page.on("request", (request) => { if (request.url() !== address && !request.url().startsWith("blob:")) defects.push(`request: ${request.url()}`); });
  await page.goto(address);
  await page.waitForSelector("html[data-ready=yes]");

  const there = await page.evaluate(() => ["bars", ...[...document.querySelectorAll("[data-figure]")].map((one) => one.dataset.figure)]);
  for (const name of figures) if (!there.includes(name)) defects.push(`no figure ${name}`);

  // A row is drawn when it is opened, and no other.
  const drawn = () => page.evaluate(() => document.querySelectorAll("svg.fig").length);
  const row = page.locator("details[data-row]").first();
  if (await row.count()) {
    const before = await drawn();
    await row.evaluate((one) => { one.parentElement.open = true; one.open = true; });
    await page.waitForFunction(() => document.querySelector("details[data-row] svg.fig"));
    const after = await drawn();
    if (after !== before + 1) defects.push(`${after - before} figures for one row`);
  }
  for (const one of await page.locator("details").all()) await one.evaluate((it) => { if (!it.dataset.row) it.open = true; });

  // Tooltips by the keyboard and by a finger.
  const mark = page.locator("svg.fig [role=img][tabindex='0']").first();
  if (await mark.count()) {
    await mark.focus();
    if (!(await page.locator("#tip").isVisible())) defects.push("no tooltip at the focus");
    const first = await page.locator("#tip").textContent();
    await page.keyboard.press("ArrowDown");
    if ((await page.locator("#tip").textContent()) === first) defects.push("arrows do not move");
    await page.keyboard.press("Escape");
    if (await page.locator("#tip").isVisible()) defects.push("Escape leaves the tooltip");
  }
  // A closer look.
  const closer = page.locator(".zooms button").first();
  if (await closer.count()) {
    const view = () => page.locator("svg.zoom").first().getAttribute("viewBox");
    const before = await view();
    await closer.click();
    if ((await view()) === before) defects.push("closer changes nothing");
  }

  // Sorting, filtering, downloads.
  let sorting = null;
  const table = page.locator("#cells");
  if (await table.count()) {
    const column = (name) => page.evaluate((wanted) => [...document.querySelectorAll("#cells tbody tr")].map((tr) => [...tr.children].find((one) => one.dataset.head === wanted)?.textContent), name);
    const button = page.locator("#cells thead button", { hasText: /^median$/ });
    const times = [];
    for (let n = 0; n < SORTS; n += 1) {
      times.push(await button.evaluate((one) => { const start = performance.now(); one.click(); document.querySelector("#cells").getBoundingClientRect(); return performance.now() - start; }));
    }
    sorting = times.sort((a, b) => a - b)[SORTS >> 1];
    const number = (text) => Number((text || "").replace(/\u202f/g, ""));
    const medians = (await column("median")).map(number);
    if (medians.some((one, at) => at && one < medians[at - 1])) defects.push("not sorted by median");
    if (sorting > 500) defects.push(`sorting takes ${sorting} ms`);
    const all = await page.evaluate(() => JSON.parse(document.getElementById("raidlab-results").textContent));
    const documents = all.replays || [all];
    const layout = documents[0].cells[0].layout;
    if (await page.locator("#choose-layout").count()) {
      await page.locator("#choose-layout").selectOption(layout);
      const left = await column("layout");
      if (!left.length || left.some((one) => one !== layout)) defects.push("the filter lets others through");
      await page.locator("#choose-layout").selectOption("");
    }
    await page.locator("#find").fill("no such cell anywhere");
    if ((await column("layout")).length) defects.push("the search lets others through");
    await page.locator("#find").fill("");
    for (const kind of ["json", "csv"]) {
      const [download] = await Promise.all([page.waitForEvent("download"), page.locator(`[data-save=${kind}]`).first().click()]);
      const text = await readFile(await download.path(), "utf8");
      if (kind === "json" && JSON.stringify(JSON.parse(text)) !== JSON.stringify(all)) defects.push("the JSON is another");
      const rounds = documents.flatMap((one) => one.cells).reduce((sum, cell) => sum + cell.samples.length, 0);
      if (kind === "csv" && text.trimEnd().split("\r\n").length !== rounds + 1) defects.push("the CSV has not every round");
    }
  }

  await fingers(file, defects);
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    for (const one of await page.evaluate(cutOff)) defects.push(`cut off at ${width}: ${one}`);
    if (shots !== "-") {
      await page.evaluate(() => window.scrollTo(0, 0));
      await page.screenshot({ path: join(shots, `${basename(file, ".html")}-${width}.png`) });
    }
  }
  defects.push(...(await accessible(context, page, modules)));
  await context.close();
  const { length } = await readFile(file);
  console.log(`${basename(file)}: ${length} bytes, ${there.length} kinds of figures${sorting === null ? "" : `, sorting ${sorting.toFixed(1)} ms`}, ${defects.length ? "DEFECTS" : "good"}`);
  for (const one of [...new Set(defects)].slice(0, 40)) console.log(`  ${one}`);
  failed ||= defects.length > 0;
};

for (const one of pages) await check(one);
await browser.close();
process.exit(failed ? 1 : 0);
