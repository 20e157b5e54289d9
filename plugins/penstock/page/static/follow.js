// An alert links to Airflow's menu entry with `#<pipeline>`: the overview inside the frame leads on to it, once.
"use strict";
(() => {
  const name = parent === self ? "" : decodeURIComponent(parent.location.hash.slice(1));
  if (!name) return;
  parent.history.replaceState(parent.history.state, "", parent.location.pathname);
  location.replace(`pipelines/${encodeURIComponent(name)}`);
})();
