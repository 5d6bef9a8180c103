// Filters of lists and tables: the controls of a form hide the elements with `data-row` in the element of `data-rows`.
// `words` are compared with the text and title of a row; `above` and `upto` limit its opset; the value of another
// control is one of the words in the attribute of that name. Controls start with the values in the address.
"use strict";

function startFilter(form) {
  const root = document.getElementById(form.dataset.rows);
  const output = form.querySelector("output");
  const rows = [...root.querySelectorAll("[data-row]")].map((row) => ({
    row, text: `${row.textContent} ${row.title}`.toLowerCase(),
  }));
  const matches = {
    words: (value, { text }) => value.toLowerCase().split(/\s+/).every((word) => text.includes(word)),
    above: (value, { row }) => Number(row.dataset.opset) > Number(value),
    upto: (value, { row }) => Number(row.dataset.opset) <= Number(value),
  };
  const fits = (name, value, each) => (
    matches[name]?.(value, each) ?? each.row.dataset[name]?.split(" ").includes(value)
  );
  const given = new URLSearchParams(location.search);
  for (const [name, value] of given) if (form.elements[name]) form.elements[name].value = value;

  function apply() {
    const values = [...new FormData(form)].filter(([, value]) => value.trim());
    let count = 0;
    for (const each of rows) {
      const isShown = values.every(([name, value]) => fits(name, value.trim(), each));
      each.row.hidden = !isShown;
      count += isShown;
    }
    const words = form.elements.words?.value.trim();
    for (const group of root.querySelectorAll("[data-group]")) {
      group.hidden = !group.querySelector("[data-row]:not([hidden])");
      if (group.tagName === "DETAILS" && words) group.open = true;
    }
    output.textContent = count === rows.length ? `${count} entries` : `${count} of ${rows.length} entries`;
  }

  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
}

document.querySelectorAll("form[data-rows]").forEach(startFilter);
