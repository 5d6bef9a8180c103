// Worker of the page that converts: loads Python once, and runs one command after the other.

import { start } from "./converter.js";

const query = self.location.search;
const folder = new URL("./", import.meta.url).href;
const SNAPSHOT = "snapshot";
const WASM = "pyodide.asm.wasm";
const CACHE = `opshift-converter${query}`;

const download = self.fetch.bind(self);
const cache = openCache().catch(() => null);

/** Return the cache of this version, and delete those of other versions; undefined without a secure connection. */
async function openCache() {
  for (const name of (await self.caches?.keys()) ?? []) {
    if (name.startsWith("opshift-converter") && name !== CACHE) await self.caches.delete(name);
  }
  return self.caches?.open(CACHE);
}

const kept = async (name) => (await cache)?.match(folder + name).catch(() => undefined);

async function keep(name, response) {
  try {
    await (await cache)?.put(folder + name, response);
  } catch {
    // no space, or a private window: the next start takes longer
  }
}

/** Return a decompressed file, from the cache of an earlier start if possible. */
async function unpacked(name) {
  const found = await kept(name);
  if (found) return found;
  const response = await download(`${folder}${name}.bin${query}`);
  if (!response.ok) throw new Error(`${name}.bin cannot be loaded: ${response.status}`);
  // the type matters for WebAssembly alone
  const headers = { "Content-Type": "application/wasm" };
  const content = new Response(response.body.pipeThrough(new DecompressionStream("gzip")), { headers });
  keep(name, content.clone());
  return content;
}

const bytes = async (response) => new Uint8Array(await response.arrayBuffer());
const read = async (name) => bytes(await unpacked(name));

// Compressed here, because not every host compresses WebAssembly.
self.fetch = (address, options) => (String(address).endsWith(WASM) ? unpacked(WASM) : download(address, options));

const converter = (async () => {
  const settings = { indexURL: folder, packages: read("packages"), query };
  const fresh = { ...settings, keep: (memory) => keep(SNAPSHOT, new Response(memory)) };
  // the memory of an earlier start of this version saves imports
  const snapshot = await kept(SNAPSHOT);
  const started = snapshot
    ? await start({ ...settings, snapshot: bytes(snapshot) }).catch(() => start(fresh))
    : await start(fresh);
  self.postMessage({ ready: true });
  return started;
})();
converter.catch((error) => self.postMessage({ failure: String(error?.message ?? error) }));

async function run({ command, text, files, settings }) {
  const { FS, MODELS, run: execute, install } = await converter;
  if (text) {
    const answer = execute("read", [], text);
    if (!answer.possible) return answer;
    files = [new File(answer.pieces, "nodes.onnx"), ...files];
  }
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
