// Convert models under Node.js with the code of the page that converts.
// Arguments: the folder of the site, the target. Standard input: paths of models, one a line.
// Standard output: for each model, the SHA-256 digest of the result, or "refused".

import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";

const [site, target] = process.argv.slice(2);
const folder = `${site}/converter/`;
const read = (name) => new Uint8Array(gunzipSync(readFileSync(`${folder}${name}.bin`)));

// the worker decompresses it while it is downloaded
if (!existsSync(`${folder}pyodide.asm.wasm`)) writeFileSync(`${folder}pyodide.asm.wasm`, read("pyodide.asm.wasm"));

const { start } = await import(pathToFileURL(`${folder}converter.js`));
const { FS, MODELS, install, run } = await start({ indexURL: folder, packages: read("packages") });
for (const path of readFileSync(0, "utf-8").split("\n").filter(Boolean)) {
  const source = readFileSync(path);
  FS.writeFile(`${MODELS}/model.onnx`, new Uint8Array(source));
  let answer = run("convert", ["model.onnx"], { target: [target] });
  while (answer.missing) {
    install(read(answer.missing));
    answer = run("convert", ["model.onnx"], { target: [target] });
  }
  const digest = createHash("sha256");
  for (const each of answer.pieces) digest.update(each instanceof Uint8Array ? each : source.subarray(...each));
  console.log(answer.possible ? digest.digest("hex") : "refused");
}
process.exit(0); // Pyodide keeps Node.js alive
