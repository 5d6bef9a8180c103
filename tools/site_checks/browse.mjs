// Check a served site in Chromium. Arguments: its address, a folder for files, the folder of installed packages,
// the path of Chromium, a model, the same model at opset 11, and a large model or nothing.
// Standard output: measured figures. A failed check ends with an error.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [address, folder, packages, executablePath, model, expected, large] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(join(packages, "playwright-core"));

const PAGES = [
  "index.html",
  "404.html",
  "changes.html?above=17&upto=21",
  "opsets.html",
  "operators/ai.onnx/Attention/index.html",
  "operators/ai.onnx/index.html",
  "operators/ai.onnx/Resize/index.html",
  "operators/ai.onnx/Resize/10-19.html",
  "operators/ai.onnx/HardSwish/14.html",
  "opsets/ai.onnx/13.html",
  "releases.html",
  "runtimes/index.html",
  "runtimes/onnxruntime-1.31.1.html",
  "runtimes/onnxruntime-webnn-1.30.0.html",
  "docs/index.html",
  "docs/getting-started.html",
  "docs/architecture.html",
  "docs/refusals.html",
  "reports/plan.html",
  "reports/diff.html",
  "reports/review.html",
];

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const context = await browser.newContext({ acceptDownloads: true });
const page = await context.newPage();
const problems = [];
page.on("console", (message) => {
  if (["error", "warning"].includes(message.type())) problems.push(`${page.url()}: ${message.text()}`);
});
page.on("pageerror", (error) => problems.push(`${page.url()}: ${error.message}`));
page.on("requestfailed", (request) => {
  const error = request.failure()?.errorText;
  // the next page was opened before this request ended
  if (error !== "net::ERR_ABORTED") problems.push(`${request.url()}: ${error}`);
});
context.on("request", (request) => {
  if (!request.url().startsWith(address) && !request.url().startsWith("blob:")) problems.push(`request to ${request.url()}`);
});

/** Search with the keyboard alone. */
async function search() {
  await page.goto(`${address}index.html`);
  await page.keyboard.press("/");
  await page.keyboard.type("interpol");
  await page.waitForSelector("#site-results li");
  const titles = await page.locator("#site-results li").allTextContents();
  const position = titles.findIndex((each) => each.startsWith("Resize"));
  assert(position >= 0, `a search for "interpol" finds ${titles}`);
  for (let count = 0; count <= position; count += 1) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/Resize/index.html");
}

/** Look at the differences between two versions: the old value comes first. */
async function differences() {
  await page.goto(`${address}operators/ai.onnx/Softmax/13.html`);
  const values = await page.locator(".change li").first().locator("del, ins").allTextContents();
  assert.deepEqual(values, ["1", "-1"]);
}

/** Return the text of the first result of a search. */
async function find(query) {
  await page.goto(`${address}index.html`);
  await page.keyboard.press("/");
  await page.keyboard.type(query);
  await page.waitForSelector("#site-results li");
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => !url.pathname.endsWith("/index.html") || url.pathname.includes("/operators/"));
}

/** Answer questions of users, each with one search or at most three clicks. */
async function tasks() {
  await find("Softmax 11");
  assert.equal(await page.locator("#attributes + .scroll tr:has-text('axis') td").first().textContent(), "1");
  await find("Resize uint8");
  await page.click("details summary:has-text('Types by version')");
  const uint8 = page.locator("tr", { has: page.locator("th code", { hasText: /^uint8$/ }) });
  assert.equal(await uint8.locator("td").first().textContent(), "10");
  await find("GroupNormalization");
  const webnn = page.locator("#runtimes ~ .scroll tr", { hasText: "webnn" });
  assert.match(await webnn.locator("td").last().textContent(), /^(yes|no|expanded|newer|\d+\/\d+|yes\*)/);
  await webnn.locator("td").last().focus();
  assert(await webnn.locator(".evidence").last().isVisible());
  await find("Unsupported model IR version");
  assert(page.url().includes("docs/errors-elsewhere.html#"));
  // a context of its own: leaving the page aborts the download of the converter
  const visitor = await (await browser.newContext()).newPage();
  await visitor.goto(`${address}index.html`);
  await visitor.click(".doors a");
  await visitor.selectOption("#convert-target", "11");
  await visitor.context().close();
  await page.goto(`${address}index.html`);
  await page.click("text=All changes between two opsets");
  await page.selectOption("[name=above]", "17");
  await page.selectOption("[name=upto]", "21");
  const opsets = await page.locator("[data-row]:visible").evaluateAll((rows) => rows.map((row) => Number(row.dataset.opset)));
  assert(opsets.length > 20 && opsets.every((each) => each > 17 && each <= 21), `${opsets.length} changes`);
}

/** Filter the operators of the first page, and convert the sample. */
async function filters() {
  await page.goto(`${address}index.html`);
  await page.fill("[name=words]", "interpolation");
  const shown = await page.locator("#categories [data-row]:visible").allTextContents();
  assert(shown.includes("Resize") && shown.length < 20, `filtered: ${shown}`);
}

/** Check the contrast, names and roles of a page by the rules of axe. */
async function accessible(checked, path, name = path) {
  if (path) await checked.goto(`${address}${path}`);
  await checked.addScriptTag({ path: join(packages, "axe-core", "axe.min.js") });
  const { violations, passes } = await checked.evaluate(() => globalThis.axe.run());
  assert(passes.length > 10, `${name} was not checked`);
  assert.deepEqual(violations.map((each) => [name, each.id, each.nodes[0].html]), []);
}

/** Check one page of each kind in light and dark mode, on small and large screens. */
async function accessibility() {
  for (const colorScheme of ["light", "dark"]) {
    // the policy of the pages does not allow the script of axe
    const checked = await (await browser.newContext({ bypassCSP: true, colorScheme })).newPage();
    for (const [path, width] of PAGES.flatMap((each) => [[each, 360], [each, 1000]])) {
      await checked.setViewportSize({ width, height: 900 });
      await accessible(checked, path);
      const tooWide = await checked.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      assert(!tooWide, `${path} scrolls sideways at ${width} pixels`);
    }
    await checked.goto(`${address}convert.html`);
    await checked.setInputFiles("#convert-file", model);
    await checked.click("#convert .primary");
    await checked.waitForSelector("#convert-result:not([hidden])", { timeout: 300_000 });
    await checked.click("#convert summary");
    await accessible(checked, "", "convert.html");
    await checked.setViewportSize({ width: 360, height: 800 });
    await checked.check("#convert [name=source][value=text]");
    await checked.fill("#convert-text", "y, i, j, c = Unique <axis = 0> (float[N, 4] x)");
    await checked.selectOption("#convert-target", "9");
    await checked.click("#convert .primary");
    await checked.waitForSelector("#convert-report pre", { timeout: 120_000 });
    await accessible(checked, "", "convert.html with text");
    await checked.context().close();
  }
}

/** Convert a model; return the seconds until the result is shown. */
async function convert(path, { reload = true, target = "11" } = {}) {
  const started = Date.now();
  if (reload) {
    await page.goto(`${address}convert.html`);
    await page.setInputFiles("#convert-file", path);
    await page.selectOption("#convert-target", target);
  }
  await page.focus("#convert .primary");
  await page.keyboard.press("Enter");
  // looks at every frame; waitForSelector waits up to half a second between two looks
  const isShown = () => document.querySelector("#convert-result:not([hidden])");
  await page.waitForFunction(isShown, null, { polling: "raf", timeout: 300_000 });
  return (Date.now() - started) / 1000;
}

/** Run a command by its button. */
async function run(name) {
  await page.click(`#convert button[value=${name}]`);
  await page.waitForFunction(() => !document.querySelector("#convert[aria-busy]"), null, { timeout: 120_000 });
}

/** Convert, refuse and fit nodes that are given as text. */
async function texts() {
  const shown = () => page.locator("#convert-report").textContent();
  await page.focus("#convert [name=source]:checked");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Tab"); // the button of the sample
  await page.keyboard.press("Tab");
  await page.keyboard.type("y = Softmax <axis = 1> (float[N, 4, 4] x)");
  await page.selectOption("#convert-opset", "9");
  await page.selectOption("#convert-target", "13");
  await run("convert");
  assert((await shown()).includes("y = Reshape(softmax, shape)"));
  await page.fill("#convert-text", "s = Sigmoid(float[2, 3] x)\ny = Mul(x, s)");
  await page.selectOption("#convert-target", "24");
  await page.click("#convert-options summary");
  await page.check("#convert [name=recognize]");
  await run("convert");
  assert((await shown()).includes("y = Swish(x)"));
  await page.uncheck("#convert [name=recognize]");
  await page.click("#convert-options summary");
  await page.fill("#convert-text", "y = Softmax(x");
  await run("plan");
  assert((await shown()).includes("line 1, column 14"));
  await page.fill("#convert-text", "y = Gelu(float[2, 3] x)");
  await page.selectOption("#convert-opset", "20");
  await run("fit");
  assert((await page.locator("#convert-notice").textContent()).includes("one runtime"));
  await page.selectOption("#convert-runtime", "tensorrt-8.6");
  await run("fit");
  assert((await shown()).includes("tensorrt-8.6 implements all nodes"));
  await download("fitted.onnx");
  await page.click("#convert-sample");
  await page.waitForFunction(() => !document.querySelector("#convert[aria-busy]"), null, { timeout: 120_000 });
  assert((await shown()).includes("ReduceMean"));
  await page.fill("#convert-text", "y = Gelu(float[2, 3] x)");
  await page.selectOption("#convert-opset", "20");
  await page.selectOption("#convert-target", "7");
  await run("convert");
  await page.click("#convert-offers button");
  await page.waitForFunction(() => !document.querySelector("#convert[aria-busy]"), null, { timeout: 120_000 });
  assert.equal(await page.locator("#convert-target").inputValue(), "9");
  assert((await shown()).includes("No node is refused"));
  await page.selectOption("#convert-runtime", { label: "all releases" });
  await run("runs");
  assert((await shown()).includes("tensorrt-8.6"));
  await page.check("#convert [name=source][value=file]");
  await page.selectOption("#convert-target", "11");
}

async function download(name) {
  const [file] = await Promise.all([page.waitForEvent("download"), page.click("#convert-downloads a.primary")]);
  await file.saveAs(join(folder, name));
  return join(folder, name);
}

/** Return the greatest resident memory of a process of this browser that runs pages, in bytes. */
function rendererMemory() {
  const parent = (id) => Number(/PPid:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf-8"))[1]);
  const isOurs = (id) => id === process.pid || (id > 1 && isOurs(parent(id)));
  const sizes = [];
  for (const id of readdirSync("/proc").map(Number).filter(Boolean)) {
    try {
      if (!readFileSync(`/proc/${id}/cmdline`, "utf-8").includes("--type=renderer") || !isOurs(id)) continue;
      sizes.push(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf-8"))[1]) * 1024);
    } catch {
      // the process has ended
    }
  }
  return Math.max(...sizes);
}

await search();
await differences();
await tasks();
await filters();
await accessibility();
const figures = { cold: await convert(model), again: await convert(model, { reload: false }) };
assert(readFileSync(await download("first.onnx")).equals(readFileSync(expected)), "the bytes differ");
await page.waitForTimeout(2000); // the snapshot is stored
figures.warm = await convert(model);
assert(readFileSync(await download("warm.onnx")).equals(readFileSync(expected)), "the bytes differ");
for (const name of ["plan", "inspect", "check", "reach", "runs"]) {
  await run(name);
  assert(await page.locator("#convert-report h1").isVisible(), name);
}
await texts();
await convert(model, { reload: false });
await page.click("#convert-downloads button");
await page.waitForSelector("#convert-report svg", { timeout: 120_000 });
if (large) {
  const before = rendererMemory();
  figures.large = await convert(large);
  figures.memory = rendererMemory() - before;
  const size = await page.locator("#convert-downloads a.primary").textContent();
  assert(/GB/.test(size), size);
  execFileSync("cmp", [await download("large.onnx"), `${large}.expected`]);
}
assert.deepEqual(problems, []);
console.log(JSON.stringify(figures));
await browser.close();
