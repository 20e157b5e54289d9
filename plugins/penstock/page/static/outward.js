// A link to a DAG takes the whole window. The frame may not navigate Airflow's window, so Airflow's router is reached through the history API.
"use strict";
(() => {
  if (parent === self) return;
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-outward]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    parent.history.pushState(null, "", link.href);
    parent.dispatchEvent(new PopStateEvent("popstate", { state: null }));
  });
})();
