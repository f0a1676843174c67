// SPDX-License-Identifier: MIT
// Flame graph and icicle of a heap profile, and the order of its table. Needs nothing but the page that it stands in.
(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const box = document.getElementById("graph"), said = document.getElementById("said");
  const search = document.getElementById("search"), reset = document.getElementById("reset");
  const HIGH = 21, LETTER = 7.25, LEAST = 0.7, NS = "http://www.w3.org/2000/svg";
  const FILLS = ["#f2b880", "#8fc7e8", "#a8d8a0", "#e8a5b8", "#cbb8ea", "#e6d98a", "#9fd9d0", "#d2c4b4"];
  let kind = 0, root = null, focus = null, chosen = null, drawn = [], isFresh = true;  // the root is in view

  function size(value) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let at = 0;
    while (value >= 999.5 && at < units.length - 1) { value /= 1024; at += 1; }
    return (at === 0 ? value.toFixed(0) : value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2)) + " " + units[at];
  }
  // Behind the kinds of the data: the difference of two profiles. Bars are as wide as the larger of both.
  function isDifference() { return kind === data.kinds.length; }
  function amount(value) {
    return isDifference() || data.kinds[kind].unit === "bytes" ? size(value) : Math.round(value).toLocaleString("en") + " objects";
  }
  function share(value) {
    return root.value > 0 ? (100 * value / root.value).toFixed(1) + " %" : "0 %";
  }
  function node(parent, frame) {
    return {parent: parent, frame: frame, value: 0, own: 0, now: 0, was: 0, kids: new Map(), depth: parent ? parent.depth + 1 : 0};
  }
  function grow() {
    root = node(null, -1);
    for (const site of data.sites) {
      const value = isDifference() ? Math.max(site.v[0], site.was || 0) : site.v[kind];
      if (!(value > 0)) continue;
      let at = root;
      at.value += value;
      at.now += site.v[0];
      at.was += site.was || 0;
      for (const frame of site.s) {
        let next = at.kids.get(frame);
        if (!next) { next = node(at, frame); at.kids.set(frame, next); }
        next.value += value;
        next.now += site.v[0];
        next.was += site.was || 0;
        at = next;
      }
      at.own += value;
    }
    focus = chosen = root;
    isFresh = true;
  }
  function name(one) { return one.frame < 0 ? "all" : data.frames[one.frame][0]; }
  function module(one) { return one.frame < 0 ? "" : data.modules[data.frames[one.frame][1]] || ""; }
  function grown(one) {
    const change = one.now - one.was;
    return size(one.was) + " → " + size(one.now) + " (" + (change > 0 ? "+" : change < 0 ? "−" : "±") + size(Math.abs(change)) + ")";
  }
  function words(one) { return isDifference() ? grown(one) : amount(one.value) + ", " + share(one.value); }
  // Red has grown, blue has shrunk, the more the stronger; grey is as it was.
  function change(one) {
    const part = (one.now - one.was) / Math.max(one.now, one.was, 1), to = part > 0 ? [242, 139, 130] : [138, 180, 248];
    return "rgb(" + [226, 229, 235].map((from, at) => Math.round(from + (to[at] - from) * Math.abs(part))).join(",") + ")";
  }
  function fill(one) { return isDifference() ? change(one) : one.frame < 0 ? "#c9ced8" : FILLS[data.frames[one.frame][1] % FILLS.length]; }
  function place(one, x, width, list) {
    if (width < LEAST) return;
    list.push({one: one, x: x, width: width});
    const kids = Array.from(one.kids.values()).sort((a, b) => b.value - a.value);
    for (const kid of kids) {
      const wide = width * kid.value / one.value;
      place(kid, x, wide, list);
      x += wide;
    }
  }
  function matcher() {
    const text = search.value.trim();
    if (!text) return null;
    try {
      const found = new RegExp(text, "i");
      return (words) => found.test(words);
    } catch (error) {
      return (words) => words.toLowerCase().includes(text.toLowerCase());
    }
  }
  function hits(test) {
    let sum = 0;
    (function walk(one) {
      if (one.frame >= 0 && test(name(one))) { sum += one.value; return; }
      one.kids.forEach(walk);
    })(root);
    return sum;
  }
  function put(parent, tag, values) {
    const made = document.createElementNS(NS, tag);
    for (const key of Object.keys(values)) made.setAttribute(key, values[key]);
    parent.appendChild(made);
    return made;
  }
  function draw() {
    const width = Math.max(200, box.clientWidth), isFlame = document.getElementById("flame").checked, test = matcher();
    const list = [];
    for (let at = focus.parent; at; at = at.parent) list.push({one: at, x: 0, width: width, isAbove: true});
    if (root.value > 0) place(focus, 0, width, list);
    const rows = 1 + list.reduce((most, item) => Math.max(most, item.one.depth), 0);
    const svg = document.createElementNS(NS, "svg");
    svg.setAttribute("width", width);
    svg.setAttribute("height", rows * HIGH);
    for (const item of list) {
      const one = item.one, y = (isFlame ? rows - 1 - one.depth : one.depth) * HIGH, isHit = test && one.frame >= 0 && test(name(one));
      const kinds = (item.isAbove ? "above " : "") + (test ? (isHit ? "hit " : "miss ") : "") + (one === chosen ? "chosen" : "");
      const group = put(svg, "g", {class: kinds});
      put(group, "rect", {x: item.x, y: y, width: Math.max(item.width, LEAST), height: HIGH - 1, rx: 2, fill: fill(one)});
      const letters = Math.floor((item.width - 8) / LETTER), label = name(one);
      if (letters >= 3) {
        const text = put(group, "text", {x: item.x + 4, y: y + 14.5});
        text.textContent = label.length <= letters ? label : label.slice(0, letters - 1) + "…";
      }
      put(group, "title", {}).textContent = label + ": " + words(one);
      group.addEventListener("click", () => { focus = chosen = one; isFresh = true; draw(); });
      group.addEventListener("mouseenter", () => say(one));
      item.group = group;
    }
    const below = box.scrollHeight - box.scrollTop;
    box.replaceChildren(svg);
    if (isFlame) box.scrollTop = box.scrollHeight - (isFresh ? 0 : below);
    else if (isFresh) box.scrollTop = 0;
    isFresh = false;
    drawn = list;
    reset.hidden = focus === root;
    if (test && chosen === root) tell([["b", amount(hits(test))], ["", " (" + share(hits(test)) + ") lies below functions that match."]]);
    else say(chosen);
  }
  function tell(parts) {
    said.replaceChildren();
    for (const part of parts) {
      const made = part[0] ? said.appendChild(document.createElement(part[0])) : said.appendChild(document.createTextNode(""));
      made.textContent = part[1];
    }
  }
  function say(one) {
    if (root.value <= 0) { tell([["", "No site has any bytes of this kind."]]); return; }
    const where = module(one);
    tell([["b", name(one)], ["", (where ? " in " + where : "") + ": " + words(one) +
      (one.own > 0 && !isDifference() ? "; " + amount(one.own) + " by itself" : "")]]);
  }
  function choose(one) {
    if (!one) return;
    chosen = one;
    draw();
    const shown = drawn.find((item) => item.one === one);
    if (shown) shown.group.scrollIntoView({block: "nearest"});
  }
  function beside(step) {
    if (!chosen.parent) return null;
    const kids = Array.from(chosen.parent.kids.values()).sort((a, b) => b.value - a.value);
    return kids[kids.indexOf(chosen) + step];
  }
  function deeper() { return Array.from(chosen.kids.values()).sort((a, b) => b.value - a.value)[0]; }
  function whole() { focus = chosen = root; isFresh = true; draw(); }
  box.addEventListener("keydown", (event) => {
    const isFlame = document.getElementById("flame").checked;
    const keys = {ArrowLeft: () => choose(beside(-1)), ArrowRight: () => choose(beside(1)),
      ArrowUp: () => choose(isFlame ? deeper() : chosen.parent), ArrowDown: () => choose(isFlame ? chosen.parent : deeper()),
      Enter: () => { focus = chosen; isFresh = true; draw(); }, Escape: whole};
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });
  reset.addEventListener("click", whole);
  function filter() {
    const test = matcher();
    for (const row of document.querySelectorAll(".sites tbody tr")) row.hidden = Boolean(test) && !test(row.textContent);
    draw();
  }
  search.addEventListener("input", filter);
  for (const input of document.querySelectorAll("input[name=kind]")) {
    if (input.checked) kind = Number(input.value);
    input.addEventListener("change", () => { kind = Number(input.value); grow(); draw(); });
  }
  for (const input of document.querySelectorAll("input[name=shape]")) input.addEventListener("change", () => { isFresh = true; draw(); });
  for (const button of document.querySelectorAll(".sites thead button")) {
    button.addEventListener("click", () => {
      const head = button.parentElement, at = Array.from(head.parentElement.children).indexOf(head);
      const isDown = head.getAttribute("aria-sort") !== "descending", body = document.querySelector(".sites tbody");
      const value = (row) => Number(row.children[at].dataset.v);
      for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      body.append(...Array.from(body.children).sort((a, b) => (isDown ? value(b) - value(a) : value(a) - value(b))));
    });
  }
  let last = 0;
  window.addEventListener("resize", () => { if (box.clientWidth !== last) { last = box.clientWidth; draw(); } });
  grow();
  draw();
})();
