"use strict";
(() => {
const $ = (query, root = document) => [...root.querySelectorAll(query)];
const make = (name, attributes = {}, ...inside) => {
  const one = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  one.append(...inside);
  return one;
};
const SVG = "http://www.w3.org/2000/svg";
const draw = (name, attributes, text) => {
  const one = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  if (text !== undefined) one.textContent = text;
  return one;
};
const px = (value) => String(Math.round(value * 10) / 10);

// Numbers as the rest of the page writes them: three significant digits, groups of three.
const fmt = (value) => {
  if (value === null || value === undefined) return "";
  const size = Math.abs(value);
  let decimals = 0;
  for (let one = size; one > 0 && one < 99.95 && decimals < 12; one *= 10) decimals += 1;
  const [whole, rest] = value.toFixed(decimals).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  return rest ? grouped + "." + rest : grouped;
};

// Tooltips: by mouse, touch and keyboard.
const tip = make("div", { id: "tip", role: "status", "aria-live": "off", hidden: "" });
document.body.append(tip);
const place = (box) => {
  const left = Math.min(Math.max(8, box.left), window.innerWidth - tip.offsetWidth - 8);
  const below = box.bottom + 6;
  const fits = below + tip.offsetHeight < window.innerHeight;
  tip.style.left = px(Math.max(8, left) + window.scrollX) + "px";
  tip.style.top = px((fits ? below : box.top - tip.offsetHeight - 6) + window.scrollY) + "px";
};
const show = (target) => {
  tip.textContent = (target.dataset.tip || target.getAttribute("aria-label")).replaceAll("; ", "\n");
  tip.hidden = false;
  place(target.getBoundingClientRect());
};
const hide = () => { tip.hidden = true; };
const MARKS = "td[data-tip], svg.fig [role=img]";
const tipped = (event) => event.target.closest ? event.target.closest(MARKS) : null;
for (const kind of ["pointerover", "focusin", "click"]) {
  document.addEventListener(kind, (event) => {
    const target = tipped(event);
    if (target) show(target); else if (kind !== "focusin") hide();
  });
}
document.addEventListener("focusout", hide);

// One stop of the Tab key for each figure or table; arrows go on from there.
const stops = (root) => {
  const marks = $(MARKS, root);
  marks.forEach((mark, at) => mark.setAttribute("tabindex", at ? "-1" : "0"));
};
$("svg.fig, table.overview").forEach(stops);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hide();
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const target = step && tipped(event);
  if (!target) return;
  const marks = $(MARKS, target.closest("svg.fig, table.overview"));
  const next = marks[marks.indexOf(target) + step];
  if (!next) return;
  event.preventDefault();
  target.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
});

