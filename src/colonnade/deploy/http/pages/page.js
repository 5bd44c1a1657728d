// The page without this script works, and reloads itself; with it only what changed is replaced, and not while
// somebody fills in a form. On the sign-in page it takes the key out of a link that was made by a command.
"use strict";

const PAUSE_MS = 2000;

function inUse(main) {
  const fields = [...main.querySelectorAll("input:not([type=hidden])")];
  const touched = fields.some((field) => field.checked || (field.type === "text" && field.value !== ""));
  return touched || main.querySelector("details[open]") !== null || main.contains(document.activeElement);
}

async function refresh() {
  const main = document.querySelector("main[data-live]");
  if (main && !document.hidden && !inUse(main)) {
    try {
      const answer = await fetch(location.pathname, { headers: { "X-Refresh": "1" }, redirect: "manual" });
      if (answer.type === "opaqueredirect" || answer.status === 401) {
        location.assign("/login");
        return;
      }
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
      if (answer.ok && next && !inUse(main) && next.innerHTML !== main.innerHTML) {
        main.innerHTML = next.innerHTML;
      }
      document.body.classList.remove("away");
    } catch {
      document.body.classList.add("away"); // the daemon does not answer; the page says so
    }
  }
  setTimeout(refresh, PAUSE_MS);
}

function signIn() {
  const form = document.querySelector("form[data-sign-in]");
  const key = location.hash.slice(1);
  if (form && key) {
    history.replaceState(null, "", location.pathname);
    form.elements.key.value = key;
    form.submit();
  }
}

signIn();
setTimeout(refresh, PAUSE_MS);
