// The data.
const text = document.getElementById("raidlab-results");
if (!text) return;
const parsed = JSON.parse(text.textContent);
const documents = parsed.replays || [parsed];
const rowsText = document.getElementById("raidlab-rows");
const rowsOf = rowsText ? JSON.parse(rowsText.textContent) : {};

// The bars of a row, as the figures above are drawn.
const BAR = 16, WIDTH = 420, LANES = [-4, 0, 4];
const bars = (row) => {
  const cells = row.c.map(([at, value, tone, best]) => ({ cell: documents[row.d].cells[at], value, tone, best }));
  const longest = Math.max(...cells.map((one) => one.cell.layout.length));
  const above = longest > 11, high = BAR + (above ? 20 : 9), start = above ? 2 : 7.4 * longest + 2;
  const room = Math.min(210, Math.max(40, ...cells.map((one) => one.best ? one.value.length * 7.4 + 34 : one.value.length * 6.6 + 18)));
  const end = WIDTH - room, bottom = high * cells.length + 2;
  const x = (value) => start + (end - start) * Math.min(1, Math.max(0, value / row.t));
  const svg = draw("svg", { class: "fig", viewBox: `0 0 ${WIDTH} ${px(bottom + 36)}`, role: "group", "aria-label": row.n });
  for (const [value, label] of row.k) {
    const at = x(value);
    svg.append(draw("line", { class: "grid", x1: px(at), x2: px(at), y1: 0, y2: px(bottom) }));
    svg.append(draw("text", { class: "tick", x: px(at), y: px(bottom + 14), "text-anchor": at < 14 ? "start" : "middle" }, label));
  }
  svg.append(draw("text", { class: "axis mid", x: px((start + end) / 2), y: px(bottom + 29) }, row.u));
  const over = [];
  cells.forEach(({ cell, value, tone, best }, at) => {
    const y = high * (at + 1) - BAR / 2 - 2, known = tone !== "unknown";
    const words = `${cell.layout}: ${value}; rounds ${cell.samples.map(fmt).join(", ")}`;
    const mark = draw("g", { role: "img", "aria-label": words });
    mark.append(draw("rect", { x: 0, y: px(y - 11), width: WIDTH, height: 22, fill: "none", "pointer-events": "all" }));
    if (known) {
      mark.append(draw("rect", { class: "bar " + tone, x: px(x(0)), y: px(y - BAR / 2), width: px(x(cell.median) - x(0)), height: BAR }));
      if (cell.ci95) {
        const [low, top] = cell.ci95.map((one) => px(x(one)));
        mark.append(draw("path", { class: "ci", d: `M${low} ${px(y)}H${top}M${low} ${px(y)}m0 -5v10M${top} ${px(y)}m0 -5v10` }));
      }
      const dots = cell.samples.map((one, n) => `M${px(x(one))} ${px(y + LANES[n % 3])}h0`).join("");
      mark.append(draw("path", { class: "halo", d: dots }), draw("path", { class: "dots", d: dots }));
    }
    svg.append(mark);
    const behind = 7 + (known ? Math.max(x(cell.median), ...cell.samples.map(x), ...(cell.ci95 || []).map(x)) : x(0));
    over.push(above
      ? draw("text", { class: "val", x: px(start), y: px(y - BAR / 2 - 4) }, cell.layout)
      : draw("text", { class: "end", x: px(start - 6), y: px(y + 4) }, cell.layout));
    over.push(draw("text", { class: best ? "val best" : "val", x: px(behind), y: px(y + 4) }, value + (best ? " ★" : "")));
  });
  if (row.b !== null) svg.append(draw("line", { class: "base", x1: px(x(row.b)), x2: px(x(row.b)), y1: 0, y2: px(bottom) }));
  svg.append(...over);
  return svg;
};
$("details[data-row]").forEach((details) => details.addEventListener("toggle", () => {
  if (!details.open || details.querySelector("svg")) return;
  const svg = bars(rowsOf[details.dataset.row]);
  details.append(make("figure", {}, svg));
  stops(svg);
}));

// Closer looks along time.
const zoomable = (svg) => {
  const inner = $("svg.zoom", svg)[0], ticks = $(".xticks", svg)[0];
  const [first, last] = (inner.dataset.reach || "").split(" ").map(Number);
  if (!(last > first)) return;
  const [, , width, height] = inner.getAttribute("viewBox").split(" ").map(Number);
  const left = Number(ticks.dataset.left), right = Number(ticks.dataset.right);
  let from = 0, to = 1;
  const set = (a, b) => {
    const span = Math.min(1, Math.max(0.02, b - a));
    from = Math.min(1 - span, Math.max(0, a));
    to = from + span;
    inner.setAttribute("viewBox", `${from * width} 0 ${span * width} ${height}`);
    const low = first + from * (last - first), high = first + to * (last - first);
    const y = ticks.querySelector("text").getAttribute("y"), lines = $("line", ticks);
    const [y1, y2] = [lines[0].getAttribute("y1"), lines[0].getAttribute("y2")];
    ticks.replaceChildren();
    for (let n = 0; n <= 4; n += 1) {
      const at = px(left + (right - left) * n / 4);
      ticks.append(draw("line", { class: "grid", x1: at, x2: at, y1, y2 }));
      const anchor = n === 4 ? "end" : "middle";
      ticks.append(draw("text", { class: "tick", x: n === 4 ? px(right + 12) : at, y, "text-anchor": anchor }, fmt(low + (high - low) * n / 4)));
    }
  };
  const around = (factor, middle = (from + to) / 2) => {
    const span = (to - from) * factor;
    set(middle - span * (middle - from) / (to - from), middle + span * (to - middle) / (to - from));
  };
  const move = (share) => set(from + share * (to - from), to + share * (to - from));
  const button = (label, name, act) => {
    const one = make("button", { type: "button", "aria-label": name, title: name }, label);
    one.addEventListener("click", act);
    return one;
  };
  svg.after(make("div", { class: "zooms", role: "group", "aria-label": "closer look along time" },
    button("+", "closer", () => around(0.5)), button("−", "further", () => around(2)),
    button("◀", "earlier", () => move(-0.5)), button("▶", "later", () => move(0.5)),
    button("all", "all of it", () => set(0, 1))));
  const share = (event) => {
    const box = inner.getBoundingClientRect();
    return from + (to - from) * (event.clientX - box.left) / box.width;
  };
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    around(event.deltaY < 0 ? 0.8 : 1.25, share(event));
  }, { passive: false });
  let dragged = null;
  svg.addEventListener("pointerdown", (event) => { dragged = share(event); });
  svg.addEventListener("pointerup", (event) => {
    const end = share(event);
    if (dragged !== null && Math.abs(end - dragged) > 0.03) set(Math.min(dragged, end), Math.max(dragged, end));
    dragged = null;
  });
};
$("svg.fig").filter((svg) => svg.querySelector("svg.zoom")).forEach(zoomable);

// Every cell: sorted, filtered, a page at a time.
const COLUMNS = [
  ["layout", (cell) => cell.layout], ["workload", (cell) => cell.workload],
  ["processes", (cell) => cell.processes], ["state", (cell) => cell.state],
  ["metric", (cell) => cell.metric + (cell.unit ? ", " + cell.unit : "")],
  ["settings", (cell) => Object.entries(cell.settings || {}).map((one) => one.join("=")).join(", ")],
  ["median", (cell) => cell.median], ["mean", (cell) => cell.mean],
  ["95 % interval", (cell) => cell.ci95 && cell.ci95.map(fmt).join(" to ")],
  ["% against baseline", (cell) => cell.percent_vs_baseline], ["verdict", (cell) => cell.verdict],
  ["a kernel's 90 of 100 times", (cell) => cell.trust && (cell.trust.interval90 ? cell.trust.interval90.map(fmt).join(" to ") : cell.trust.not_checked)],
  ["of 100 such differences with this sign", (cell) => cell.trust && cell.trust.sign_of_100],
  ["published", (cell) => cell.published && cell.published.value],
  ["p99 ms", (cell) => cell.latency_ms && cell.latency_ms.p99],
  ["last done s", (cell) => cell.last_done_s],
  ["busiest", (cell) => cell.bottleneck && `${cell.bottleneck.resource} ${Math.round(cell.bottleneck.busy * 100)} %`],
  ["rounds", (cell) => cell.samples.map(fmt).join(", ")],
];
const PAGE = 25;
$(".every-cell").forEach((host) => {
  const all = documents.flatMap((one, d) => one.cells.map((cell) => ({ cell, d })));
  const used = COLUMNS.filter(([, get]) => all.some(({ cell }) => { const it = get(cell); return it !== null && it !== undefined && it !== ""; }));
  const keys = all.map(({ cell }) => (cell.layout + " " + cell.workload + " " + cell.state + " " + cell.metric + " " + cell.processes + " " + JSON.stringify(cell.settings)).toLowerCase());
  let order = all.map((_, at) => at), sorted = null, up = true, page = 0;
  const find = make("input", { type: "search", id: "find", autocomplete: "off" });
  const choices = [["layout", 0], ["workload", 1], ["processes", 2], ["state", 3]].map(([name, at]) => {
    const values = [...new Set(all.map(({ cell }) => String(COLUMNS[at][1](cell))))];
    const select = make("select", { id: "choose-" + name }, make("option", { value: "" }, "all"),
      ...values.map((value) => make("option", {}, value)));
    return { at, values, select, label: make("label", { for: "choose-" + name }, name + " ", select) };
  });
  const status = make("p", { role: "status", class: "note" });
  const heads = used.map(([name]) => {
    const button = make("button", { type: "button" }, name);
    return { name, button, th: make("th", { scope: "col" }, button) };
  });
  const body = make("tbody");
  const table = make("table", { class: "cells", id: "cells" }, make("thead", {}, make("tr", {}, ...heads.map((one) => one.th))), body);
  const turn = (label, by) => {
    const one = make("button", { type: "button" }, label);
    one.addEventListener("click", () => { page += by; fill(); });
    return one;
  };
  const [back, on] = [turn("previous", -1), turn("next", 1)];
  const shown = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    return order.filter((at) => words.every((word) => keys[at].includes(word))
      && choices.every((one) => !one.select.value || String(COLUMNS[one.at][1](all[at].cell)) === one.select.value));
  };
  const fill = () => {
    const own = shown(), pages = Math.max(1, Math.ceil(own.length / PAGE));
    page = Math.min(pages - 1, Math.max(0, page));
    const rows = own.slice(page * PAGE, page * PAGE + PAGE).map((at) => {
      const row = document.createElement("tr");
      used.forEach(([, get], n) => {
        const value = get(all[at].cell), one = document.createElement(n ? "td" : "th");
        if (!n) one.scope = "row";
        one.textContent = typeof value !== "number" ? value ?? "" : used[n][0] === "processes" ? value : fmt(value);
        one.dataset.head = used[n][0];
        row.append(one);
      });
      return row;
    });
    body.replaceChildren(...rows);
    const part = pages > 1 ? `, page ${page + 1} of ${pages}` : "";
    status.textContent = `${own.length} of ${all.length} cells${part}`;
    back.disabled = page === 0;
    on.disabled = page + 1 === pages;
    back.hidden = on.hidden = pages === 1;
  };
  const sort = (n) => {
    up = sorted === n ? !up : true;
    sorted = n;
    const get = used[n][1], values = all.map(({ cell }) => get(cell)), way = up ? 1 : -1;
    const less = (a, b) => {
      const [one, other] = [values[a], values[b]];
      const none = (it) => it === null || it === undefined || it === "";
      if (none(one) || none(other)) return none(one) - none(other) || a - b;
      const by = typeof one === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true });
      return by * way || a - b;
    };
    order = all.map((_, at) => at).sort(less);
    heads.forEach((head, at) => {
      if (at === n) head.th.setAttribute("aria-sort", up ? "ascending" : "descending");
      else head.th.removeAttribute("aria-sort");
    });
    page = 0;
    fill();
  };
  heads.forEach((head, n) => head.button.addEventListener("click", () => sort(n)));
  const again = () => { page = 0; fill(); };
  find.addEventListener("input", again);
  choices.forEach((one) => one.select.addEventListener("change", again));
  host.replaceChildren(
    make("div", { class: "filters" }, make("label", { for: "find" }, "find ", find),
      ...choices.filter((one) => one.values.length > 1).map((one) => one.label)),
    status,
    make("div", { class: "scroll", role: "region", "aria-label": "Table of every cell", tabindex: "0" }, table),
    make("p", { class: "pages" }, back, on));
  fill();
});

// Downloads, made from what is in the page.
const save = (name, kind, contents) => {
  const url = URL.createObjectURL(new Blob([contents], { type: kind }));
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
};
const quoted = (value) => {
  const plain = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
};
const csv = () => {
  const head = ["study", "workload", "layout", "processes", "state", "metric", "unit", "settings", "round", "value"];
  const lines = documents.flatMap((one) => one.cells.flatMap((cell) => cell.samples.map((sample, round) => [
    one.study, cell.workload, cell.layout, cell.processes, cell.state, cell.metric, cell.unit,
    COLUMNS[5][1](cell), round + 1, sample])));
  return [head, ...lines].map((line) => line.map(quoted).join(",") + "\r\n").join("");
};
$("button[data-save]").forEach((button) => {
  button.hidden = false;
  button.addEventListener("click", () => {
    if (button.dataset.save === "csv") save("raidlab-rounds.csv", "text/csv", csv());
    else save("raidlab.json", "application/json", JSON.stringify(parsed, null, 2) + "\n");
  });
});
window.addEventListener("beforeprint", () => $("details.settings, details.words").forEach((one) => { one.open = true; }));
document.documentElement.dataset.ready = "yes";
})();
