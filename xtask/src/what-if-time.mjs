// Times cells in the what-if page beside those of the command line: `cargo xtask what-if --time RAIDLAB` runs this.
//
//     node what-if-time.mjs MODULES CHROMIUM PAGE.html RAIDLAB
//
// Each case is computed by the page's worker and by RAIDLAB in turns, ROUNDS times; both have one thread. Of the page it is
// the time of the worker's call, with all that is shown. Of the command it is that of its cells: the time of six rounds less
// that of one, times 6/5, so that neither its start nor the chances of loss, which the page does not have, are in it.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { started } from "./browser.mjs";

const [modules, executablePath, file, raidlab] = process.argv.slice(2);
const ROUNDS = 7;
// The page may take so many times as long.
const LIMIT = 3;
const CASES = {
  "raid5, 4 disks, random reads": "level=raid5&pattern=randread&run=16",
  "raid5, 4 disks, random writes": "level=raid5&pattern=randwrite&run=16",
  "raid10, 6 disks, sequential reads": "level=raid10&count=6&pattern=read&block=20&run=16",
  "raid6, 8 disks, sequential writes": "level=raid6&count=8&pattern=write&block=20&run=16",
  "raid5, 4 NVMe SSDs, random writes, 8 at once": "level=raid5&model=ssd-nvme4-2tb&pattern=randwrite&depth=3&run=4",
};

const place = mkdtempSync(join(tmpdir(), "raidlab-what-if-"));
const browser = await started(modules, executablePath);
const context = await browser.newContext({ acceptDownloads: true });
context.setDefaultTimeout(120_000);
const median = (values) => [...values].sort((one, other) => one - other)[values.length >> 1];
const extent = (values) => `${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)}`;
const command = (study, rounds) => {
  const start = performance.now();
  const run = spawnSync(raidlab, ["compare", study, "--rounds", String(rounds), "--threads", "1", "--no-store", "--quiet", "--json", "-"], { maxBuffer: 1 << 28 });
  if (run.status !== 0) throw new Error(String(run.stderr));
  return (performance.now() - start) / 1000;
};
let isSlow = false;

for (const [name, address] of Object.entries(CASES)) {
  const page = await context.newPage();
  await page.goto(`${pathToFileURL(file).href}#${address}`);
  const settled = () => page.waitForFunction(() => document.documentElement.dataset.state === "done", null, { timeout: 600_000 });
  await settled();
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("[data-do=save-study]").first().click()]);
  const study = join(place, "study.toml");
  await download.saveAs(study);
  const [here, there, ratios] = [[], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    await page.evaluate(() => {
      document.documentElement.dataset.state = "moved";
      document.getElementById("controls").dispatchEvent(new Event("input", { bubbles: true }));
    });
    await settled();
    here.push(await page.evaluate(() => Number(document.documentElement.dataset.seconds)));
    there.push((6 / 5) * (command(study, 6) - command(study, 1)));
    ratios.push(here.at(-1) / there.at(-1));
  }
  const ratio = median(ratios);
  isSlow ||= ratio > LIMIT;
  console.log(`${name}: page ${median(here).toFixed(2)} s, command ${median(there).toFixed(2)} s, ratio ${ratio.toFixed(2)} (${extent(ratios)})`);
  await page.close();
}
await browser.close();
rmSync(place, { recursive: true });
console.log(isSlow ? `more than ${LIMIT} times as long` : `at most ${LIMIT} times as long, ${ROUNDS} rounds in turns`);
process.exit(isSlow ? 1 : 0);
