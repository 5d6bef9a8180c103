// Form of the page that converts. The worker does the work; see converter/worker.js.

/** Return a number of bytes as text, such as 1.2 MB. */
function bytes(count) {
  const power = Math.min(3, Math.max(0, Math.floor(Math.log10(count || 1) / 3)));
  const unit = ["bytes", "kB", "MB", "GB"][power];
  return `${(count / 1000 ** power).toFixed(power ? 1 : 0)} ${unit}`;
}

/** Return a duration in milliseconds as text, such as 1.2 s. */
function seconds(milliseconds) {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}

/** Maximum number of bytes of a file that is shown as text. */
const MAX_TEXT = 1e6;

function startConverter(form) {
  const [file, text, opset, other, drop, hint, status, notice, result, downloads, report, offers, progress, cancel,
    sample, options] = [
    "file", "text", "opset", "other", "drop", "hint", "status", "notice", "result", "downloads", "report", "offers",
    "progress", "cancel", "sample", "options",
  ].map((name) => document.getElementById(`convert-${name}`));
  const buttons = form.querySelectorAll("button");
  let clock = 0;
  let worker = null;
  let isReady = false;
  let addresses = [];
  let converted = null;
  form.hidden = false;

  function fail(text) {
    notice.textContent = text;
    notice.hidden = !text;
    status.textContent = "";
  }

  function start() {
    if (worker) return;
    if (location.protocol === "file:") {
      fail("Browsers do not run this page from a folder. Serve the folder, for example with "
        + "\u201cpython -m http.server\u201d, and open the address that it prints.");
      return;
    }
    try {
      worker = new Worker(form.dataset.worker, { type: "module" });
    } catch (error) {
      fail(String(error));
      return;
    }
    if (!status.textContent) status.textContent = "Loading the converter\u2026";
    watch();
    worker.onerror = (event) => stop(event.message || "The converter cannot be loaded.");
    worker.onmessage = ({ data }) => {
      if (data.ready) {
        isReady = true;
        if (form.hasAttribute("aria-busy")) {
          loading = performance.now() - started;
          status.textContent = `Working on ${modelName()}\u2026`;
        } else {
          status.textContent = "The converter is ready.";
          unwatch();
        }
      }
      if (data.failure) stop(data.failure);
      if (data.answer) show(data.answer);
    };
  }

  function stop(reason) {
    worker?.terminate();
    worker = null;
    isReady = false;
    setBusy(false);
    fail(reason);
  }

  /** Show that work takes longer than a second, and offer to cancel it. */
  function watch() {
    unwatch();
    clock = setTimeout(() => { progress.hidden = cancel.hidden = false; }, 1000);
  }

  function unwatch() {
    clearTimeout(clock);
    progress.hidden = cancel.hidden = true;
  }

  function setBusy(isBusy) {
    form.toggleAttribute("aria-busy", isBusy);
    if (isBusy) watch();
    else unwatch();
    for (const each of buttons) each.disabled = isBusy;
  }

  let command = "";
  let started = 0;
  /** Milliseconds of the command in which the converter was loaded. */
  let loading = 0;

  const isText = () => form.elements.source.value === "text";

  /** Return the problem that prevents a command, and the control to correct. */
  function problem(name, files) {
    if (isText() ? !text.value.trim() : !file.files[0]) {
      return isText() ? ["Write a node first.", text] : ["Choose a model first.", file];
    }
    if (files.some((each) => !each)) return ["Choose the newer model first.", other];
    const needsRuntime = name === "fit" && !form.elements.runtime.selectedOptions[0].closest("optgroup");
    return needsRuntime ? ["Choose one runtime first.", form.elements.runtime] : null;
  }

  function run(name, newer = other.files[0]) {
    const files = isText() ? [] : [file.files[0]];
    if (name === "compare" || name === "diff") files.push(newer);
    if (newer !== converted) converted = null;
    const found = problem(name, files);
    if (found) {
      fail(found[0]);
      found[1].focus();
      return;
    }
    fail("");
    start();
    if (!worker) return;
    const values = new FormData(form);
    const settings = {
      target: values.get("target") ? [values.get("target")] : null,
      without: values.getAll("without"),
      allow: values.getAll("allow"),
      shapes: values.get("shapes").split("\n").filter((each) => each.trim()),
      check: values.has("check"),
      recognize: values.has("recognize"),
      reversible: values.has("reversible"),
      bump: values.has("bump"),
      keep_initializer_inputs: values.has("keep_initializer_inputs"),
      runtime: values.get("runtime"),
      nodes: isText(),
    };
    command = name;
    started = performance.now();
    loading = 0;
    setBusy(true);
    result.hidden = true;
    status.textContent = isReady ? `Working on ${modelName()}\u2026` : "Loading the converter\u2026";
    worker.postMessage({
      command,
      text: isText() ? { text: text.value, opset: opset.value } : null,
      files,
      settings,
    });
  }

  const modelName = () => (isText() ? "nodes.onnx" : file.files[0].name);

  function link(label, name, blob, isPrimary) {
    const address = URL.createObjectURL(blob);
    addresses.push(address);
    const made = document.createElement("a");
    made.className = isPrimary ? "button primary" : "button";
    made.href = address;
    made.download = name;
    made.textContent = label;
    return made;
  }

  function show(answer) {
    setBusy(false);
    addresses.forEach(URL.revokeObjectURL);
    addresses = [];
    const [, stem, suffix] = /^(.*?)(\.[^.]*)?$/.exec(modelName());
    const blob = (content, type) => new Blob([content], { type });
    downloads.replaceChildren();
    if (answer.model) {
      const { target, runtime } = form.elements;
      const name = `${stem}-${(command === "fit" ? runtime : target).value || "converted"}${suffix ?? ".onnx"}`;
      converted = new File([answer.model], name, { type: answer.model.type });
    }
    if (converted) {
      const differences = document.createElement("button");
      differences.type = "button";
      differences.textContent = "Show differences";
      differences.onclick = () => run("diff", converted);
      const label = `Download ${converted.name} (${bytes(converted.size)})`;
      downloads.append(link(label, converted.name, converted, true), differences);
    }
    downloads.append(
      link("Report as page", `${stem}-${command}.html`, blob(answer.page, "text/html")),
      link("as Markdown", `${stem}-${command}.md`, blob(answer.markdown, "text/markdown")),
      link("as JSON", `${stem}-${command}.json`, blob(answer.json, "application/json")),
    );
    offers.replaceChildren(...(answer.offers ?? []).map((each) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = each.label;
      button.onclick = () => accept(each);
      return button;
    }));
    // the session escapes all texts of the model, and the policy of the page forbids scripts in it
    report.innerHTML = answer.html;
    result.classList.toggle("refused", !answer.possible);
    result.hidden = false;
    const taken = seconds(performance.now() - started - loading);
    status.textContent = `Finished in ${taken}${loading ? `, after the converter was loaded in ${seconds(loading)}` : ""}.`;
    report.focus({ preventScroll: true });
    if (report.getBoundingClientRect().top > innerHeight * 0.7) status.parentElement.scrollIntoView();
  }

  /** Convert with the target or the allowed deviations of an offer. */
  function accept({ target, allow = [] }) {
    if (target) form.elements.target.value = target;
    for (const each of form.elements.allow) each.checked ||= allow.includes(each.value);
    run("convert");
  }

  report.addEventListener("click", ({ target }) => {
    if (target.hash === "#convert-options") options.open = true;
  });
  cancel.addEventListener("click", () => {
    stop("");
    status.textContent = "Cancelled.";
  });
  sample.addEventListener("click", () => {
    form.elements.source.value = "text";
    text.value = sample.dataset.text;
    form.elements.target.value = "11";
    showSource();
    run("convert");
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run(event.submitter?.value ?? "convert");
  });
  function showSource() {
    document.getElementById("convert-file-panel").hidden = isText();
    document.getElementById("convert-text-panel").hidden = !isText();
  }

  for (const each of form.elements.source) each.addEventListener("change", showSource);
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    const isModelText = /\.(onnxtxt|textproto|json)$/.test(chosen.name) && chosen.size < MAX_TEXT;
    form.elements.source.value = isModelText ? "text" : "file";
    if (isModelText) text.value = await chosen.text();
    showSource();
    hint.textContent = `${file.files[0].name}, ${bytes(file.files[0].size)}`;
    fail("");
    start();
  });
  for (const type of ["dragenter", "dragover"]) {
    document.addEventListener(type, (event) => {
      event.preventDefault();
      drop.classList.add("over");
      start();
    });
  }
  document.addEventListener("dragleave", () => drop.classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    file.files = event.dataTransfer.files;
    file.dispatchEvent(new Event("change"));
  });
  showSource();
  start();
}

startConverter(document.getElementById("convert"));
