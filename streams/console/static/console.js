/* Keys, news, and what is told of presses. Everything works without it, by links and buttons. */
"use strict";
(() => {
  /* The only markup that a script of this page makes of text is what this server answered, by htmx. Templates escape
     whatever comes from outside, and no answer has a script in it. */
  if (window.trustedTypes) {
    trustedTypes.createPolicy("default", {
      createHTML: (text) => {
        if (/<script|<iframe|javascript:/i.test(text)) throw new TypeError("markup that no page of the console has");
        return text;
      },
    });
  }
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const body = document.body;
  const motion = window.matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";

  /* What a form sends by htmx bears the session's token. */
  body.addEventListener("htmx:configRequest", (event) => {
    event.detail.headers["X-CSRF-Token"] = one("meta[name=csrf]").content;
  });

  /* --- what can be taken back ------------------------------------------------------------------------------ */

  let told = new Map();
  const tellPresses = () => {
    const said = [];
    const now = new Map();
    for (const line of all("#strip [data-said]")) {
      const [batch, stage] = line.dataset.said.split(" ");
      now.set(batch, stage);
      if (told.get(batch) !== stage) {
        said.push(one(".what", line).textContent + ": " + one(".stage", line).textContent);
      }
    }
    told = now;
    if (said.length) one("#said").textContent = said.join(". ");
  };
  const takeBack = () => {
    const button = one(".take-back:not([disabled])");
    if (button) button.click();
    return Boolean(button);
  };
  const markPressed = () => {
    body.classList.toggle("has-strip", Boolean(one("#strip .strip")));
  };

  /* --- news ------------------------------------------------------------------------------------------------ */

  const rows = one("#rows");
  const onNews = (about) => {
    body.dispatchEvent(new CustomEvent("news"));
    if (!rows) return;
    for (const row of all(".row", rows)) {
      const isGone = about.gone.includes(row.dataset.place);
      row.classList.toggle("is-gone", isGone);
      one(".gone", row).hidden = !isGone;
    }
    const link = one("#news a");
    if (about.new && link) {
      const text = link.dataset.words.replace("%", about.new + (about.is_more ? "+" : ""));
      if (link.textContent !== text) link.textContent = text;
      link.hidden = false;
    }
  };
  let source = null;
  const listen = () => {
    if (source || !one("#strip")) return;
    const query = new URLSearchParams(rows ? rows.dataset.query : "");
    if (rows) {
      query.set("since", rows.dataset.newest);
      for (const row of all(".row", rows)) query.append("place", row.dataset.place);
    }
    source = new EventSource("/news?" + query);
    source.addEventListener("news", (event) => onNews(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      if (source && source.readyState === EventSource.CLOSED) {
        listenNoMore();
        setTimeout(() => document.hidden || listen(), 5000);
      }
    });
  };
  const listenNoMore = () => {
    if (source) source.close();
    source = null;
  };
  /* A page that nobody sees holds no connection: a browser has six for one address. */
  document.addEventListener("visibilitychange", () => (document.hidden ? listenNoMore() : listen()));
  window.addEventListener("pagehide", listenNoMore);

  /* --- keys ------------------------------------------------------------------------------------------------ */

  const isWriting = (element) =>
    element.matches("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");
  const links = () => all("#rows .open");
  const step = (by) => {
    const found = links();
    if (!found.length) return false;
    const row = document.activeElement.closest(".row");
    const at = row ? found.indexOf(one(".open", row)) : by > 0 ? -1 : found.length;
    const to = found[Math.min(Math.max(at + by, 0), found.length - 1)];
    to.focus({ preventScroll: true });
    to.closest(".row").scrollIntoView({ block: "nearest", behavior: motion });
    return true;
  };
  const follow = (selector) => {
    const link = one(selector);
    if (link) link.click();
    return Boolean(link);
  };
  const unfold = (name) => {
    const part = one("details#" + name);
    if (!part) return false;
    part.open = true;
    const press = one("button.main", part);
    const first =
      name === "accept" ? press || one(".suggestion, #choose input", part) : one("input:not([type=hidden]), select", part);
    if (first) first.focus();
    part.scrollIntoView({ block: "nearest", behavior: motion });
    return true;
  };
  const select = () => {
    const row = document.activeElement.closest(".row");
    const box = row && one("input[type=checkbox]", row);
    if (box) box.click();
    return Boolean(box);
  };
  const help = () => {
    const dialog = one("#help");
    if (dialog) dialog.showModal();
    return Boolean(dialog);
  };
  const search = () => {
    const field = one("#search");
    if (field) {
      field.focus();
      field.select();
    } else {
      location.assign("/#search");
    }
    return true;
  };
  const leave = () => {
    if (isWriting(document.activeElement) || document.activeElement.closest("#decide")) {
      document.activeElement.blur();
      one("#main").focus({ preventScroll: true });
      return true;
    }
    return follow("#back");
  };
  const choose = (key) => {
    const part = one("details#accept");
    return Boolean(part) && part.open && follow(`.suggestion[data-number="${key}"]`);
  };
  const actions = {
    j: () => step(1) || follow("#next"),
    k: () => step(-1) || follow("#back"),
    a: () => unfold("accept"),
    r: () => unfold("reject"),
    b: () => unfold("return"),
    d: () => unfold("defer"),
    u: takeBack,
    x: select,
    n: () => follow("#news a:not([hidden])"),
    "/": search,
    "?": help,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]")) return;
    const isDone =
      event.key === "Escape"
        ? leave()
        : !isWriting(event.target) && (/^[1-9]$/.test(event.key) ? choose(event.key) : (actions[event.key] || (() => false))());
    if (isDone) event.preventDefault();
  });
  const keys = one("#keys");
  if (keys) {
    keys.hidden = false;
    keys.addEventListener("click", help);
  }

  /* --- a press that is being made --------------------------------------------------------------------------- */

  /* What would follow from other labels is not known yet: nothing is pressed meanwhile. */
  document.addEventListener("change", (event) => {
    const press = event.target.closest("#choose") && one("#press-accept");
    if (press) press.disabled = true;
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form.press")) {
      for (const button of all("button", event.target)) button.disabled = true;
    }
  });
  body.addEventListener("htmx:afterSettle", (event) => {
    const target = event.detail.target;
    if (target.id === "strip") {
      markPressed();
      tellPresses();
    }
    if (target.id === "accepting" || target.id === "outcome") {
      const press = one("#press-accept");
      const refused = one("#outcome .refused");
      one("#said").textContent = press ? press.textContent : refused ? refused.textContent : "";
      if (target.id === "accepting" && press) press.focus();
    }
  });
  /* From the cache of pages: the token and the presses are of another time. */
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });

  if (one("#again")) setTimeout(() => location.reload(), 2000);
  if (location.hash === "#search") search();
  if (!document.hidden) listen();
})();
