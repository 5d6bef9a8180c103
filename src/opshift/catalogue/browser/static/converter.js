// Start of Python in a worker or in Node.js, and commands of opshift/catalogue/browser/session.py.

const MODELS = "/models";

/**
 * Start Python with opshift.
 * @param indexURL - the folder of Pyodide, with a slash at its end
 * @param packages - an archive as catalogue/browser/bundle.py writes it, or a promise of it
 * @param snapshot - the memory after an earlier start, or null, or a promise of it
 * @param keep - function that receives the memory of a start without a snapshot
 * @param query - text behind the names of scripts, so that the browser's cache distinguishes their versions
 */
export async function start({ indexURL, packages, snapshot: earlier, keep, query = "" }) {
  const [{ loadPyodide }, { default: createModule }, snapshot] = await Promise.all([
    import(`${indexURL}pyodide.mjs${query}`),
    import(`${indexURL}pyodide.asm.mjs${query}`),
    earlier,
  ]);
  const python = await loadPyodide({
    indexURL,
    lockFileURL: `${indexURL}pyodide-lock.json${query}`,
    stdLibURL: `${indexURL}python_stdlib.zip${query}`,
    _makeSnapshot: !snapshot,
    _loadSnapshot: snapshot ?? undefined,
    async createPyodideModule(settings) {
      const module = await createModule(settings);
      // Pyodide copies the snapshot into the memory without enlarging it
      if (snapshot) module._malloc(snapshot.length);
      return module;
    },
  });
  const { FS } = python;
  const folder = `/lib/python${python.runPython("import sys; '%d.%d' % sys.version_info[:2]")}/site-packages`;
  const folders = new Set();
  const install = (archive) => {
    for (const [path, content] of files(archive)) {
      const parent = `${folder}/${path}`.replace(/\/[^/]*$/, "");
      if (!folders.has(parent)) FS.mkdirTree(parent);
      folders.add(parent);
      FS.writeFile(`${folder}/${path}`, content, { canOwn: true });
    }
    python.runPython("import importlib; importlib.invalidate_caches()");
  };
  install(await packages);
  FS.mkdirTree(MODELS);
  FS.chdir(MODELS);
  const session = python.pyimport("opshift.catalogue.browser.session");
  if (!snapshot && keep) {
    session.prepare();
    keep(python.makeMemorySnapshot());
  }
  return {
    FS,
    install,
    /** Run a command on files in MODELS, and return its answer. */
    run(command, names, settings) {
      const answer = session.run(command, names, JSON.stringify(settings));
      try {
        return answer.toJs({ dict_converter: Object.fromEntries });
      } finally {
        answer.destroy();
      }
    },
    MODELS,
  };
}

/** Yield the path and content of each file: the length of the index, the index, and the contents. */
function* files(archive) {
  const head = new DataView(archive.buffer, archive.byteOffset).getUint32(0, true);
  let start = 4 + head;
  for (const [path, size] of JSON.parse(new TextDecoder().decode(archive.subarray(4, start)))) {
    yield [path, archive.subarray(start, start + size)];
    start += size;
  }
}
