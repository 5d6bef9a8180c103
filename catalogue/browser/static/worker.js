// Worker of the page that converts: loads Python once, and runs one command after the other.

import { start } from "./converter.js";

const query = self.location.search;
const folder = new URL("./", import.meta.url).href;
const SNAPSHOTS = "opshift-converter";
const WASM = "pyodide.asm.wasm";

const download = self.fetch.bind(self);

async function unpacked(name) {
  const response = await download(`${folder}${name}.bin${query}`);
  if (!response.ok) throw new Error(`${name}.bin cannot be loaded: ${response.status}`);
  return response.body.pipeThrough(new DecompressionStream("gzip"));
}

const read = async (name) => new Uint8Array(await new Response(await unpacked(name)).arrayBuffer());

// Compressed here, because not every host compresses WebAssembly.
self.fetch = async (address, options) =>
  String(address).endsWith(WASM)
    ? new Response(await unpacked(WASM), { headers: { "Content-Type": "application/wasm" } })
    : download(address, options);

/** Return the memory of an earlier start of this version, which saves imports; null if there is none. */
async function readSnapshot() {
  const found = await (await self.caches?.open(SNAPSHOTS))?.match(`${folder}snapshot${query}`);
  return found ? new Uint8Array(await found.arrayBuffer()) : null;
}

async function keepSnapshot(memory) {
  try {
    await self.caches?.delete(SNAPSHOTS);
    await (await self.caches?.open(SNAPSHOTS))?.put(`${folder}snapshot${query}`, new Response(memory));
  } catch {
    // no space, or a private window: the next start takes longer
  }
}

const converter = (async () => {
  const [packages, snapshot] = await Promise.all([read("packages"), readSnapshot().catch(() => null)]);
  const settings = { indexURL: folder, packages, query };
  const started = snapshot
    ? await start({ ...settings, snapshot }).catch(() => start({ ...settings, keep: keepSnapshot }))
    : await start({ ...settings, keep: keepSnapshot });
  self.postMessage({ ready: true });
  return started;
})();
converter.catch((error) => self.postMessage({ failure: String(error?.message ?? error) }));

async function run({ command, files, settings }) {
  const { FS, MODELS, run: execute, install } = await converter;
  // two models may have the same name
  const names = files.map((file, index) => (files.length > 1 ? `${["old", "new"][index]}/${file.name}` : file.name));
  const blobs = files.map((data, index) => ({ name: names[index], data }));
  FS.mount(FS.filesystems.WORKERFS, { blobs }, MODELS);
  FS.chdir(MODELS);
  try {
    let answer = execute(command, names, settings);
    while (answer.missing) {
      install(await read(answer.missing));
      answer = execute(command, names, settings);
    }
    const { pieces, ...rest } = answer;
    const parts = (pieces ?? []).map((each) => (each instanceof Uint8Array ? each : files[0].slice(...each)));
    return { ...rest, model: parts.length ? new Blob(parts, { type: "application/octet-stream" }) : null };
  } finally {
    FS.chdir("/");
    FS.unmount(MODELS);
  }
}

self.onmessage = async ({ data }) => {
  try {
    self.postMessage({ id: data.id, answer: await run(data) });
  } catch (error) {
    self.postMessage({ id: data.id, failure: String(error?.message ?? error) });
  }
};
