// Runs the page's worker with a program that answers as it is told to: `node worker.mjs WORKER`. Prints what the page
// is told, a line for each case.

import { readFileSync } from "node:fs";
import vm from "node:vm";

const source = readFileSync(process.argv[2], "utf8");

const program = (run) => {
  const memory = { buffer: new ArrayBuffer(65536) };
  const give = (object) => {
    const bytes = new TextEncoder().encode(JSON.stringify(object));
    new Uint8Array(memory.buffer, 4096, bytes.length).set(bytes);
    return (4096n << 32n) | BigInt(bytes.length);
  };
  const plan = () => give({ layouts: [{ survives: 1 }] });
  return { memory, allocate: () => 1024, release() {}, plan, run: () => run(give) };
};

const told = async (run) => {
  const out = [];
  const context = vm.createContext({
    postMessage: (message) => out.push(message),
    performance,
    TextDecoder,
    TextEncoder,
    WebAssembly: {
      instantiate: async () => {
        if (!run) throw new RangeError("no memory");
        return { exports: program(run) };
      },
    },
  });
  vm.runInContext(source, context);
  const jobs = [{ study: "a" }, { study: "b", redundant: true }];
  await vm.runInContext("onmessage", context)({ data: { module: {}, serial: 7, jobs } });
  return out.map((message) => `${message.serial}:${Object.keys(message)[1]}`).join(" ");
};

console.log(await told((give) => give({ rows: [] })));
console.log(await told((give) => give({ errors: ["no time passed"] })));
console.log(await told(() => { throw new RangeError("unreachable"); }));
console.log(await told(undefined));
