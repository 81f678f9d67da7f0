"use strict";
(() => {
  const table = document.getElementById("overview-table");
  const bodies = [...table.tBodies];
  const studies = () => bodies.flatMap((body) => [...body.querySelectorAll("tr.study")]);
  const original = new Map(studies().map((row, index) => [row, index]));

  function value(row, column) {
    const given = row.cells[column].dataset.value;
    return given === undefined ? NaN : Number(given);
  }

  function order(column, direction) {
    return (a, b) => {
      const [x, y] = [value(a, column), value(b, column)];
      const known = Number.isNaN(x) - Number.isNaN(y);
      return known || direction * (x - y) || original.get(a) - original.get(b);
    };
  }

  const next = { none: "descending", descending: "ascending", ascending: "none" };
  const heads = [...table.querySelectorAll("thead th[data-sort]")];

  function sort(head) {
    const state = next[head.getAttribute("aria-sort")];
    heads.forEach((other) => other.setAttribute("aria-sort", other === head ? state : "none"));
    const compare = state === "none"
      ? (a, b) => original.get(a) - original.get(b)
      : order(head.cellIndex, state === "ascending" ? 1 : -1);
    bodies.forEach((body) => body.append(...[...body.querySelectorAll("tr.study")].sort(compare)));
  }

  heads.forEach((head) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort by this ranker's score";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head));
    head.append(button);
    head.setAttribute("aria-sort", "none");
  });

  const input = document.getElementById("filter");
  const count = document.getElementById("filter-count");

  function filter() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = studies();
    rows.forEach((row) => {
      const text = row.cells[0].textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    });
    bodies.forEach((body) => {
      const heading = body.querySelector("tr.family");
      if (heading) heading.hidden = !body.querySelector("tr.study:not([hidden])");
    });
    const shown = rows.filter((row) => !row.hidden).length;
    count.textContent = words.length ? `${shown} of ${rows.length}` : "";
  }

  input.addEventListener("input", filter);
  document.getElementById("filter-box").hidden = false;
})();
