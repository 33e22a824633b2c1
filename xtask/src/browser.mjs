// What the tests of pages share: a browser, what is cut off, and what people cannot read or reach.

import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const packages = (modules) => createRequire(join(modules, "package.json"));

// Headless Chromium. Whether browsers start here says nothing about pages: who calls is told so (NO_BROWSER in
// pages.rs).
export const started = (modules, executablePath) =>
  packages(modules)("playwright-core").chromium.launch({ executablePath, args: ["--no-sandbox"] }).catch((error) => {
    console.log(`${executablePath} does not start: ${error.message.split("\n")[0]}`);
    process.exit(77);
  });

// What stands further right than the window, or is wider than the box that holds it; runs in the page.
export const cutOff = () => {
  const bad = [];
  if (document.documentElement.scrollWidth > window.innerWidth) bad.push(`page ${document.documentElement.scrollWidth}`);
  for (const one of document.querySelectorAll(".scroll")) {
    if (one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1) bad.push(`${one.getAttribute("aria-label")} ${one.scrollWidth} > ${one.clientWidth}`);
  }
  for (const text of document.querySelectorAll("svg.fig text")) {
    const box = text.getBoundingClientRect(), around = text.ownerSVGElement.getBoundingClientRect();
    if (box.width > 0 && (box.right > around.right + 2 || box.left < around.left - 2)) bad.push(`text ${text.textContent}`);
  }
  return bad;
};

// What axe-core finds in light and in dark: what is serious is given, the rest printed.
export const accessible = async (context, page, modules) => {
  const axe = await readFile(packages(modules).resolve("axe-core/axe.min.js"), "utf8");
  const defects = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const session = await context.newCDPSession(page);
    // Not by an inline element, which the page's policy refuses.
    await session.send("Runtime.evaluate", { expression: axe });
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    for (const one of violations) {
      const line = `axe, ${colorScheme}: ${one.impact} ${one.id}: ${one.nodes.length} of ${one.nodes[0].html.slice(0, 120)}`;
      if (["serious", "critical"].includes(one.impact)) defects.push(line); else console.log(`  ${line}`);
    }
  }
  return defects;
};
