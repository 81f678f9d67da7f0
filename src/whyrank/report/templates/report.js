"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  const list = element("list"), original = [...list.children];
  const studies = original.filter((row) => row.matches("details.study"));
  const [input, sort, unfold, shown] = ["filter", "sort", "unfold", "shown"].map(element);
  const value = (row) => {
    if (sort.value === "spread") return Number(row.dataset.spread);
    const given = row.dataset.values.split(" ")[Number(sort.value)];
    return given ? Number(given) : -Infinity;
  };

  function arrange() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    studies.forEach((row) => { row.hidden = !words.every((word) => row.dataset.words.includes(word)); });
    const sorted = sort.value !== "";
    const rows = sorted ? [...studies].sort((a, b) => value(b) - value(a)) : original;
    list.append(...rows);
    let heading = null;
    original.forEach((row) => {
      if (row.matches(".theme")) { heading = row; row.hidden = true; }
      else if (heading && !row.hidden && !sorted) heading.hidden = false;
    });
    const count = studies.filter((row) => !row.hidden).length;
    shown.textContent = words.length ? `${count} of ${studies.length}` : "";
  }

  function reveal() {
    const target = location.hash.length > 1 && element(decodeURIComponent(location.hash.slice(1)));
    const folded = target && target.closest("details");
    if (folded) { folded.open = true; target.scrollIntoView(); }
  }

  input.addEventListener("input", arrange);
  sort.addEventListener("input", arrange);
  unfold.addEventListener("click", () => {
    const open = studies.some((row) => !row.hidden && !row.open);
    studies.forEach((row) => { if (!row.hidden) row.open = open; });
    unfold.textContent = open ? "Fold all" : "Unfold all";
  });
  addEventListener("hashchange", reveal);
  const terms = [...document.querySelectorAll("#terms tbody tr")];
  if (terms.length) element("term").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    terms.forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(wanted); });
  });
  document.querySelectorAll("form.tools").forEach((form) => {
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
  });
  reveal();
})();
