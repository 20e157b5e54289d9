// Airflow's own choice of light or dark, where the page stands in Airflow; else the browser's.
"use strict";
(() => {
  const outside = window.parent !== window ? window.parent.document.documentElement : null;
  const follow = () => {
    const classes = outside ? outside.classList : [];
    const chosen = outside && (classes.contains("dark") ? "dark" : classes.contains("light") ? "light" : "");
    document.documentElement.dataset.theme = chosen || "";
    document.dispatchEvent(new Event("theme"));
  };
  follow();
  if (outside) new MutationObserver(follow).observe(outside, { attributes: true, attributeFilter: ["class"] });
})();
