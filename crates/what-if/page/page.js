const by = (id) => document.getElementById(id);
const form = by("controls");
const LOOK = document.documentElement;
// What an array is; all else is work that both arrays do.
const ARRAY = ["model", "count", "level", "copies", "rotation", "chunk"];
const WORK = ["pattern", "block", "processes", "depth", "file", "state", "run", "host"];
const CHUNKED = new Set(form.elements.chunk.closest("[data-levels]").dataset.levels.split(" "));
const ROTATED = new Set(form.elements.rotation.closest("[data-levels]").dataset.levels.split(" "));
const PAUSE = 150;
const MIB = 2 ** 20;

const power = (exponent) => 2 ** Number(exponent);
const size = (bytes) => (bytes >= MIB ? `${bytes / MIB}\u00a0MiB` : `${bytes / 1024}\u00a0KiB`);
const SHOWN = { chunk: (text) => size(power(text)), block: (text) => size(power(text)), depth: (text) => String(power(text)) };
const option = (select, value) => [...select.options].find((one) => one.value === value);

// The controls, their address, and what a choice of them makes of others.
const read = () => Object.fromEntries(new FormData(form));
const allows = (name, value) => {
  const control = form.elements[name];
  if (control instanceof RadioNodeList) return [...control].some((one) => one.value === value);
  if (control.tagName === "SELECT") return Boolean(option(control, value));
  return /^\d+$/.test(value) && Number(value) >= Number(control.min) && Number(value) <= Number(control.max);
};
const write = (values) => {
  for (const [name, value] of Object.entries(values)) if (allows(name, value)) form.elements[name].value = value;
};
// All controls have a value, be they hidden or not.
const all = () => Object.fromEntries([...ARRAY, ...WORK].map((name) => [name, form.elements[name].value]));
let pinned = null;
const fromAddress = () => {
  const given = new URLSearchParams(location.hash.slice(1));
  const named = (prefix, names) => Object.fromEntries(names.filter((name) => given.has(prefix + name)).map((name) => [name, given.get(prefix + name)]));
  write(named("", [...ARRAY, ...WORK]));
  const other = named("pinned-", ARRAY);
  const whole = ARRAY.every((name) => other[name] !== undefined && allows(name, other[name]));
  pinned = whole ? other : null;
};
const address = () => {
  const values = new URLSearchParams(all());
  for (const name of pinned ? ARRAY : []) values.set("pinned-" + name, pinned[name]);
  return "#" + values;
};
const fit = () => {
  const { level } = all();
  for (const field of $("[data-levels]", form)) {
    const has = field.dataset.levels.split(" ").includes(level);
    field.hidden = !has;
    if (field.tagName === "OPTION") field.disabled = !has;
  }
  const rotation = form.elements.rotation;
  if (rotation.selectedOptions[0].disabled) rotation.value = "left-symmetric";
  for (const slider of $("input[type=range]", form)) {
    const text = (SHOWN[slider.name] || String)(slider.value);
    by(slider.name + "-value").textContent = text;
    slider.setAttribute("aria-valuetext", text);
  }
  const comparing = Boolean(pinned);
  by("pin").textContent = comparing ? "Pin this instead" : "Pin this to compare";
  by("swap").hidden = by("unpin").hidden = !comparing;
};

// Studies, as people write them.
const members = (array) => (array.level === "single" ? 1 : Number(array.count));
const label = (array) => {
  const drives = array.level === "single" ? array.model : `${array.count} × ${array.model}`;
  const more = [array.level === "raid10" ? array.copies : "", CHUNKED.has(array.level) ? `chunk ${size(power(array.chunk))}` : "", ROTATED.has(array.level) && array.rotation !== "left-symmetric" ? array.rotation : ""];
  return [`${array.level}, ${drives}`, ...more.filter(Boolean)].join(", ");
};
const bytes = (count) => (count % MIB ? `${count / 1024}k` : `${count / MIB}m`);
const layout = (array, name) => {
  const lines = ["[[layouts]]"];
  if (name) lines.push(`name = "${name}"`, `drives = "${name}"`);
  lines.push(`level = "${array.level}"`);
  if (array.level !== "single") lines.push(`members = ${array.count}`);
  if (array.level === "raid1+0") lines.push(`arrays = ${Math.max(2, Math.ceil(array.count / 2))}`);
  if (CHUNKED.has(array.level)) lines.push(`chunk = "${size(power(array.chunk)).replace("\u00a0", "")}"`);
  if (ROTATED.has(array.level)) lines.push(`rotation = "${array.rotation}"`);
  if (array.level === "raid10") lines.push(array.copies.replace(" ", " = "));
  return lines.join("\n");
};
const drives = (array, name) => `[[drives]]\nname = "${name}"\nmodel = "${array.model}"\ncount = ${members(array)}`;
// Enough requests to tell, in a time that nobody minds; beside a rebuild requests take longer.
const amount = (work, arrays) => {
  const isFast = arrays.every((array) => option(form.elements.model, array.model).dataset.kind === "ssd");
  const block = power(work.block);
  const [requests, most] = isFast ? [4096, 512 * MIB] : [work.state === "rebuilding" ? 256 : 512, 256 * MIB];
  const wanted = work.pattern.startsWith("rand") ? Math.min(requests * block, most) : most;
  return Math.max(wanted, 64 * block) * Number(work.run);
};
const workload = (work, count) => {
  const lines = ["[[workloads]]", 'kind = "fio"', `rw = "${work.pattern}"`];
  if (work.pattern === "randrw") lines.push("rwmixread = 70");
  lines.push(`bs = "${bytes(power(work.block))}"`, 'ioengine = "libaio"', `iodepth = ${power(work.depth)}`, "direct = 1", "randrepeat = 0");
  // Else short runs would tell how fast the drives' own caches are.
  if (!["read", "randread"].includes(work.pattern)) lines.push("end_fsync = 1");
  return [...lines, `size = "${work.file}"`, `io_size = "${bytes(count)}"`].join("\n");
};
const study = (work, title, state, count) => {
  const [mine, other] = [work, pinned];
  const names = other ? ["pinned", "this"] : [""];
  const arrays = other ? [other, mine] : [mine];
  const head = [`title = "${title}"`, "seed = 1", "rounds = 6"];
  if (other) head.push('baseline = ["pinned"]');
  head.push(`processes = [${work.processes}]`, `states = ["${state}"]`);
  if (work.host !== "own") head.push(`host = { kernel = "${work.host}" }`);
  const groups = arrays.map((array, at) => drives(array, names[at] || "drives"));
  const layouts = arrays.map((array, at) => layout(array, names[at]));
  return [head.join("\n"), ...groups, ...layouts, workload(work, count)].join("\n\n") + "\n";
};
// The study of the work, and where that does not tell how long a rebuild takes, one that does.
const studies = () => {
  const work = all();
  const arrays = pinned ? [work, pinned] : [work];
  const made = [{ file: "what-if.toml", study: study(work, "What if", work.state, amount(work, arrays)) }];
  if (work.state !== "rebuilding") {
    const least = 64 * power(work.block);
    const alone = { ...work, pattern: "randread", processes: "1" };
    made.push({ file: "what-if-rebuild.toml", study: study(alone, "What if: the rebuild alone", "rebuilding", least), rounds: 1, redundant: true });
  }
  return made;
};

// The worker, made from a text of this page so that it works from a file.
const workerAddress = URL.createObjectURL(new Blob([by("worker").textContent], { type: "text/javascript" }));
const unpacked = async () => {
  const packed = Uint8Array.from(atob(by("program").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
};
let program = null;
let worker = null;
let isBusy = false;
let serial = 0;
let jobs = [];
let answers = [];
const say = (text) => { by("status").textContent = text; };
const go = () => {
  // A run that nobody waits for any more ends with its worker.
  if (isBusy && worker) {
    worker.terminate();
    worker = null;
    LOOK.dataset.cancelled = String(Number(LOOK.dataset.cancelled || 0) + 1);
  }
  serial += 1;
  jobs = studies();
  answers = [];
  const message = { serial, jobs };
  if (!worker) {
    worker = new Worker(workerAddress);
    worker.onmessage = ({ data }) => { if (data.serial === serial) hear(data); };
    worker.onerror = (event) => defect(event.message);
    message.module = program;
  }
  isBusy = true;
  LOOK.dataset.state = "busy";
  by("shown").classList.add("stale");
  by("progress").hidden = false;
  by("progress").value = 0;
  worker.postMessage(message);
};
const settle = (state) => {
  isBusy = false;
  by("progress").hidden = true;
  LOOK.dataset.state = state;
  LOOK.dataset.ready = "yes";
};
const hear = (data) => {
  if (data.defect) return defect(data.defect);
  if (data.plan) return data.plan.errors ? wrong(data.plan.errors) : planned(data.plan);
  if (data.progress) {
    const { done, total } = data.progress;
    const what = answers.length ? "The rebuild alone" : "Simulating";
    say(`${what}: ${done} of ${total} runs`);
    by("progress").value = done / total;
    LOOK.dataset.told = String(Number(LOOK.dataset.told || 0) + 1);
    return undefined;
  }
  if (data.answer) {
    if (data.answer.errors) return wrong(data.answer.errors);
    answers[data.job] = { ...data.answer, seconds: data.seconds };
    if (!data.job) LOOK.dataset.seconds = String(data.seconds);
    return answered();
  }
  if (data.done) {
    const [{ rounds }] = answers;
    const seconds = answers.reduce((sum, one) => sum + (one ? one.seconds : 0), 0);
    say(`${rounds} rounds in ${fmt(seconds)}\u00a0s`);
    settle("done");
  }
  return undefined;
};
const defect = (text) => {
  worker.terminate();
  worker = null;
  fail([`A defect of raidlab: ${text}. Please report it with the address of this page.`]);
};

// What is wrong, at its control and above the answer.
const CONTROLS = {
  "layouts.members": "count", "layouts.arrays": "count", "layouts.level": "level", "layouts.chunk": "chunk",
  "layouts.near": "copies", "layouts.far": "copies", "layouts.offset": "copies", "layouts.rotation": "rotation",
  "drives.model": "model", "drives.count": "count", "workloads.size": "file", "workloads.io_size": "file",
  "workloads.bs": "block", "workloads.iodepth": "depth", states: "state", processes: "processes", host: "host",
};
const clear = () => {
  for (const one of $(".error", form)) one.textContent = "";
  for (const one of $("[aria-invalid]", form)) one.removeAttribute("aria-invalid");
  by("failure").hidden = true;
};
const fail = (lines) => {
  by("failure").replaceChildren(...lines.map((line) => make("p", {}, line)));
  by("failure").hidden = false;
  by("headline").textContent = "";
  say("No answer");
  settle("wrong");
};
const wrong = (errors) => {
  clear();
  for (const { key, reason } of errors) {
    const name = CONTROLS[key];
    if (!name) continue;
    by(name + "-error").textContent = reason;
    const control = form.elements[name];
    for (const one of control instanceof RadioNodeList ? control : [control]) one.setAttribute("aria-invalid", "true");
  }
  fail(["This cannot be:", ...errors.map(({ reason }) => reason)]);
};

// The answer.
const lines = (...texts) => texts.filter(Boolean).map((text) => make("small", {}, text));
const which = (name) => (pinned ? make("span", { class: "which" }, name) : "");
const figure = (cell, none) => {
  if (!cell) return [make("span", { class: "none" }, none)];
  const value = make("span", { class: "value" }, cell.value, ...(cell.unit ? ["\u00a0", cell.unit] : []));
  return [value, ...lines(cell.confidence, cell.trust, cell.note)];
};
const difference = (cell) => {
  if (!cell || !cell.percent) return [];
  const tone = { better: "faster", worse: "slower" }[cell.verdict] || "same";
  return [make("span", { class: `percent ${tone}` }, `${cell.percent}, ${cell.verdict}`), ...lines(cell.percent_interval)];
};
const row = (title, cells, last, metric) => {
  const attributes = metric ? { "data-metric": metric } : {};
  const heads = pinned ? ["this", "pinned"] : ["this"];
  const tds = cells.map((inside, at) => make("td", { "data-head": heads[at] }, ...inside));
  if (pinned) tds.push(make("td", { class: "against" }, ...last));
  return make("tr", attributes, make("th", { scope: "row" }, title), ...tds);
};
// Of the layouts of a study the page shows its own first.
const own = (list) => (pinned ? [list[1], list[0]] : [list[0]]);
const table = (answer, more) => {
  const rows = [];
  const { state } = all();
  const none = (at) => (own(answer.layouts)[at].survives ? "not measured" : state === "healthy" ? "cannot be rebuilt" : "no redundancy");
  for (const one of [...answer.rows, ...more]) {
    const cells = own(one.cells);
    rows.push(row(one.title, cells.map((cell, at) => figure(cell, none(at))), difference(cells[0]), one.metric));
  }
  const fact = (title, of, metric) => rows.push(row(title, own(answer.layouts).map(of), [], metric));
  const limits = own(answer.limits);
  if (answer.limits.length === answer.layouts.length) rows.push(row("What limits it", limits.map((text) => lines(text)), [], "limit"));
  fact("Usable", (one) => [make("span", { class: "value" }, one.capacity), ...lines(`${one.efficiency} of the drives`)], "capacity");
  fact("Survives", (one) => [make("span", { class: "value" }, one.survives_words)], "survives");
  const head = pinned ? [make("thead", {}, make("tr", {}, make("td"), ...["this", "pinned"].map((name, at) => make("th", { scope: "col" }, name, ...lines(label(at ? pinned : all())))), make("th", { scope: "col" }, "this against pinned")))] : [];
  const caption = make("caption", {}, pinned ? "Medians; below them where the median of endless rounds would lie, and a kernel's." : label(all()));
  return make("table", { class: pinned ? "glance two" : "glance" }, caption, ...head, make("tbody", {}, ...rows));
};
// What stays in sight while controls are moved.
const headline = () => {
  const of = (answer, metric, before) => {
    const found = answer && answer.rows.filter((one) => one.metric === metric).map((one) => own(one.cells)[0]).at(-1);
    return found ? `${before}${found.value}\u00a0${found.unit}`.trim() : "";
  };
  const [first] = answers;
  const lead = first.rows[0].metric === "iops" ? ["iops", "mib_per_s"] : ["mib_per_s", "iops"];
  const rebuilt = answers.map((answer) => of(answer, "rebuild_s", "rebuild\u00a0"));
  const texts = [...lead.map((metric) => of(first, metric, "")), of(first, "p50_ms", "p50\u00a0"), of(first, "latency_p99_ms", "p99\u00a0"), rebuilt.find(Boolean)];
  by("headline").textContent = texts.filter(Boolean).join(" · ");
};
const field = (word, ofRow, isLost) => {
  const kinds = [word === "P" || word === "Q" ? "par" : word === "-" ? "none" : `d${Math.floor(parseInt(word, 10) / ofRow) % 2}`];
  if (word.includes("'")) kinds.push("copy");
  if (isLost) kinds.push("lost");
  return make("td", { class: kinds.join(" ") }, word);
};
const map = (one, name) => {
  const { state } = all();
  const lost = state === "healthy" || !one.survives ? -1 : one.lost;
  const first = one.blocks.length ? one.blocks[0].split(" ") : [];
  const count = first.length;
  // Chunks of one row of the array have one colour.
  const ofRow = new Set(first.map((word) => parseInt(word, 10)).filter((number) => number >= 0)).size;
  const heads = Array.from({ length: count }, (_, at) => make("th", { scope: "col", class: at === lost ? "lost" : "" }, `m${at}`));
  const rows = one.blocks.map((line) => make("tr", {}, ...line.split(" ").map((word, at) => field(word, ofRow, at === lost))));
  const said = lost < 0 ? "" : state === "degraded" ? ` Drive m${lost} is lost (crossed out).` : ` Drive m${lost} is new and being rebuilt (crossed out).`;
  const caption = make("caption", {}, which(name), ` ${one.drawn} Numbers: chunks of the array in order; ’ a copy; P, Q parity; m0, m1: drives.${said}`);
  return make("table", { class: "map" }, caption, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
};
const maps = (layouts) => {
  const names = pinned ? ["this", "pinned"] : ["this"];
  by("maps").replaceChildren(...own(layouts).map((one, at) => map(one, names[at])));
};
const planned = (plan) => {
  clear();
  maps(plan.layouts);
  say("Simulating");
  commands();
};
const answered = () => {
  const [first, second] = answers;
  by("figures").replaceChildren(table(first, second ? second.rows.filter((one) => one.title === "Rebuild alone") : []));
  headline();
  by("sentences").replaceChildren(...first.sentences.map((text) => make("li", {}, text)));
  by("charts").innerHTML = first.charts;
  $("svg.fig", by("charts")).forEach(stops);
  const remarks = first.trust.map(({ title, text }) => make("li", {}, make("strong", {}, `${title}: `), text));
  const warnings = first.warnings.map((text) => make("li", { class: "warning" }, text));
  by("trust").replaceChildren(make("li", {}, "All times are virtual: drives, host and md are models. The same seed gives the same numbers everywhere."), ...remarks, ...warnings);
  by("shown").classList.remove("stale");
  commands();
};

// Studies and commands to take along.
const copied = async (button, text) => {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied");
  } catch {
    getSelection().selectAllChildren(button.closest("div").querySelector("code, pre"));
    say("Selected: copy it by Ctrl+C");
  }
};
const saved = (name, text, type) => {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
const button = (text, name, done) => {
  const one = make("button", { type: "button", "data-do": name }, text);
  one.addEventListener("click", () => done(one));
  return one;
};
const commands = () => {
  by("studies").replaceChildren(...jobs.filter((job, at) => !job.redundant || answers[at]).map((job) => {
    const at = jobs.indexOf(job);
    const command = `raidlab compare ${job.file}${job.rounds ? ` --rounds ${job.rounds}` : ""}`;
    const document = answers[at] && answers[at].document;
    const pressed = [button("Copy the command", "copy-command", (one) => copied(one, command)), button("Save the study", "save-study", () => saved(job.file, job.study, "application/toml"))];
    if (document) pressed.push(button("Save the results (JSON)", "save-results", () => saved(job.file.replace(".toml", ".json"), document, "application/json")));
    return make("div", { class: "study" }, make("p", {}, make("code", {}, command)), make("p", { class: "saves" }, ...pressed),
      make("details", {}, make("summary", {}, job.file), make("pre", { tabindex: "0", "aria-label": job.file }, job.study)));
  }));
};

// What people do.
let pause = 0;
const changed = () => {
  fit();
  history.replaceState(null, "", address());
  clearTimeout(pause);
  pause = setTimeout(() => { if (program) go(); }, PAUSE);
};
form.addEventListener("input", (event) => {
  // The usual block of what is chosen.
  if (event.target.name === "pattern") form.elements.block.value = event.target.value.startsWith("rand") ? "12" : "20";
  changed();
});
form.addEventListener("submit", (event) => event.preventDefault());
const arrayOf = (values) => Object.fromEntries(ARRAY.map((name) => [name, values[name]]));
by("pin").addEventListener("click", () => { pinned = arrayOf(all()); changed(); });
by("unpin").addEventListener("click", () => { pinned = null; changed(); by("pin").focus(); });
by("swap").addEventListener("click", () => { const mine = arrayOf(all()); write(pinned); pinned = mine; changed(); });
addEventListener("hashchange", () => { fromAddress(); changed(); });
fromAddress();
fit();
say("Loading");
unpacked().then((compiled) => { program = compiled; go(); }, (error) => fail([`This browser cannot run the simulator: ${error.message}`]));
})();
