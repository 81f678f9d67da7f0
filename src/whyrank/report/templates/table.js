"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const size = data.terms.length, step = 200;
  const [terms, kinds, weights] = [Int32Array.from(data.terms), Int32Array.from(data.kinds), Float32Array.from(data.weights)];
  const queryOf = new Int32Array(size);
  let start = 0;
  data.rows.forEach((length, row) => { queryOf.fill(row, start, start += length); });
  const largest = weights.reduce((a, b) => Math.max(a, b), 0) || 1;
  const element = (id) => document.getElementById(id);
  const body = element("entries").tBodies[0];
  const ranks = (words) => {
    const order = words.map((_, i) => i).sort((a, b) => (words[a] < words[b] ? -1 : words[a] > words[b] ? 1 : 0));
    const found = new Int32Array(words.length);
    order.forEach((word, rank) => { found[word] = rank; });
    return found;
  };
  const [queryRanks, docRanks, classRanks] = [ranks(data.query), ranks(data.doc), ranks(data.classes)];
  const keys = {
    query: (i) => queryRanks[queryOf[i]], doc: (i) => docRanks[terms[i]],
    weight: (i) => weights[i], class: (i) => classRanks[kinds[i]],
  };
  let [key, direction, found, shown] = ["weight", -1, [], 0];

  function fitting(words, given) {
    const text = given.trim().toLowerCase();
    if (!text) return null;
    const exact = text.length > 1 && /^"[^]*"$/.test(text);
    const wanted = exact ? text.slice(1, -1) : text.replace(/^"/, "");
    return Uint8Array.from(words, (word) => (exact ? word.toLowerCase() === wanted : word.toLowerCase().startsWith(wanted)));
  }

  function select() {
    const queries = fitting(data.query, element("query").value);
    const docs = fitting(data.doc, element("doc").value);
    const kind = element("class").value === "" ? -1 : Number(element("class").value);
    const least = Math.fround(Number(element("least").value) || 0);  // weights are of single precision too
    found = [];
    for (let i = 0; i < size; i += 1) {
      if ((!queries || queries[queryOf[i]]) && (!docs || docs[terms[i]]) && (kind < 0 || kinds[i] === kind)
          && weights[i] >= least) found.push(i);
    }
    element("count").textContent = `${found.length.toLocaleString("en")} of ${size.toLocaleString("en")}`;
    arrange();
  }

  function arrange() {
    const value = keys[key];
    found.sort((a, b) => direction * (value(a) - value(b)) || weights[b] - weights[a] || a - b);
    body.replaceChildren();
    shown = 0;
    more();
  }

  function cell(row, text, kind) {
    const made = row.insertCell();
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  function more() {
    const rows = document.createDocumentFragment();
    for (const i of found.slice(shown, shown + step)) {
      const row = document.createElement("tr");
      cell(row, data.query[queryOf[i]]).dir = "auto";
      cell(row, data.doc[terms[i]]).dir = "auto";
      cell(row, String(data.weights[i]), "num").style.setProperty("--w", (weights[i] / largest).toFixed(3));
      cell(row, data.classes[kinds[i]]);
      rows.append(row);
    }
    body.append(rows);
    shown = Math.min(found.length, shown + step);
    element("more").hidden = shown >= found.length;
  }

  const heads = [...element("entries").tHead.rows[0].cells];
  function mark() {
    heads.forEach((head) => head.setAttribute("aria-sort", head.dataset.key !== key ? "none" : direction < 0 ? "descending" : "ascending"));
  }
  heads.forEach((head) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => {
      const same = key === head.dataset.key;
      direction = same ? -direction : head.dataset.key === "weight" ? -1 : 1;
      key = head.dataset.key;
      mark();
      arrange();
    });
    head.append(button);
  });
  data.classes.forEach((name, i) => element("class").add(new Option(name, i)));
  ["query", "doc", "class", "least"].forEach((id) => element(id).addEventListener("input", select));
  element("tools").addEventListener("submit", (event) => event.preventDefault());
  element("more").addEventListener("click", more);
  element("tools").hidden = false;
  mark();
  select();
})();
