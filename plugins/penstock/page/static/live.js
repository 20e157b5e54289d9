// The page keeps itself current: it asks for itself again and exchanges the sections that have changed.
"use strict";
(() => {
  const every = Number(document.body.dataset.refresh) * 1000;
  const offline = document.getElementById("offline");

  function exchange(fresh) {
    for (const section of document.querySelectorAll("main > [data-live]")) if (!fresh.getElementById(section.id)) section.remove();
    let last = null;
    for (const other of fresh.querySelectorAll("[data-live]")) {
      const section = document.getElementById(other.id);
      if (!section && last && other.parentElement.tagName === "MAIN") last.after(document.importNode(other, true));
      else if (section && other.innerHTML !== section.innerHTML) section.innerHTML = other.innerHTML;
      last = document.getElementById(other.id) || last;
    }
  }

  function complain(words) {
    offline.textContent = words;
    offline.hidden = words === "";
  }

  async function refresh() {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (answer.status === 401 || answer.status === 403) return complain("Your login has ended. Log in again to see more; what stands here is old.");
      exchange(new DOMParser().parseFromString(await answer.text(), "text/html"));
      complain(answer.status === 503 ? "The ledger does not answer. What stands here is old." : "");
    } catch {
      complain("Airflow does not answer. What stands here is old.");
    }
  }

  // One question after the other: a slow server is not asked twice at once.
  async function stay() {
    await refresh();
    setTimeout(stay, every);
  }

  if (document.querySelector("[data-live]:not(#clock)")) setTimeout(stay, every);
})();
