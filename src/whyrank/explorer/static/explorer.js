"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  const say = (text) => { element("message").textContent = text; };

  document.addEventListener("input", () => say(""));
  for (const name of ["htmx:beforeRequest", "htmx:afterRequest"]) document.addEventListener(name, ({ detail }) => {
    const { target, verb } = detail.requestConfig, starts = name === "htmx:beforeRequest";
    if (starts && verb === "post" && target.id !== "scores") say("");
    if (target.id === "texts") element("texts").inert = starts; // what is typed until they are replaced would be lost
  });
  document.addEventListener("htmx:sendError", () => say("The explorer does not answer. Is it still running?"));
})();
