"use strict";
// Runs studies one after the other: {serial, jobs: [{study, rounds, redundant}]}. What is told has the same serial.
let api = null;
let serial = 0;
const tell = (message) => postMessage({ serial, ...message });
const words = (at, length) => new TextDecoder().decode(new Uint8Array(api.memory.buffer, at, length));
const page = {
  progress: (done, total) => tell({ progress: { done, total } }),
  failed: (at, length) => tell({ defect: words(at, length) }),
};
const call = (name, text, ...more) => {
  const bytes = new TextEncoder().encode(text);
  const at = api.allocate(bytes.length);
  new Uint8Array(api.memory.buffer, at, bytes.length).set(bytes);
  const answer = BigInt.asUintN(64, api[name](at, bytes.length, ...more));
  const [place, length] = [Number(answer >> 32n), Number(answer & 0xffffffffn)];
  const json = words(place, length);
  api.release(place, length);
  return JSON.parse(json);
};
const run = async ({ module, jobs }) => {
  if (module) api = (await WebAssembly.instantiate(module, { page })).exports;
  let survives = false;
  for (const [at, job] of jobs.entries()) {
    // A rebuild needs something to rebuild from.
    if (job.redundant && !survives) continue;
    if (at === 0) {
      const plan = call("plan", job.study);
      tell({ plan });
      if (plan.errors) return;
      survives = plan.layouts.some((layout) => layout.survives > 0);
    }
    const start = performance.now();
    const answer = call("run", job.study, job.rounds || 0);
    tell({ answer, job: at, seconds: (performance.now() - start) / 1000 });
    if (answer.errors) return;
  }
  tell({ done: true });
};
onmessage = async ({ data }) => {
  serial = data.serial;
  try {
    await run(data);
  } catch (error) {
    // No memory, no more stack, no module: what `failed` is not called for. After that nothing of it can be trusted.
    tell({ defect: String(error) });
  }
};
