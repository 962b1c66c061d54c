"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [KIND, DEPTH, NAME, HINT, START, END, STATUS, READ, WRITTEN, COST, SECTIONS] = [...Array(11).keys()];
  const rows = data.rows, said = data.said, HEIGHT = 28, MOST_PRINTED = 5000, PAGE = 200, UNFOLDED = 400;
  const byId = (id) => document.getElementById(id);
  const list = byId("list"), space = byId("space"), details = byId("details"), search = byId("search");
  const talk = byId("talk"), main = byId("main"), count = byId("count"), none = byId("none"), help = byId("help");

  const isBad = (row) => row[STATUS] !== "ok";
  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined && text !== null) element.textContent = text;
    return element;
  };
  const number = (value) => value.toLocaleString("en-US");
  const short = (value) => (value < 10000 ? number(value) : value < 1e6 ? `${Math.round(value / 1000)}k` : `${(value / 1e6).toFixed(value < 1e7 ? 2 : 1)}M`);
  const duration = (ms) => {
    if (ms < 999.5) return `${Math.round(ms)} ms`;
    if (ms < 59995) return `${(ms / 1000).toFixed(2)} s`;
    const minutes = Math.floor(Math.round(ms / 1000) / 60);
    if (minutes < 60) return `${minutes} min ${String(Math.round(ms / 1000) % 60).padStart(2, "0")} s`;
    return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
  };

  // Where each row stands: the row around it, the outermost one, how many rows are inside of it, and their problems.
  const parents = [], tops = [], sizes = rows.map(() => 0), troubles = rows.map(() => 0), folded = new Set();
  const path = [];
  rows.forEach((row, at) => {
    path.length = row[DEPTH];
    parents.push(path.length ? path[path.length - 1] : -1);
    tops.push(path.length ? path[0] : at);
    for (const above of path) {
      sizes[above] += 1;
      if (isBad(row)) troubles[above] += 1;
    }
    path.push(at);
  });
  const whole = [];
  whole[START] = 0;
  whole[END] = rows.reduce((latest, row) => Math.max(latest, row[END]), 0);
  const turnsOnly = () => rows.forEach((row, at) => { if (sizes[at] && row[DEPTH] === 0) folded.add(at); });
  if (rows.length > UNFOLDED) {
    turnsOnly();
    const last = rows.findLastIndex((row) => row[DEPTH] === 0);
    if (last >= 0 && sizes[last] <= UNFOLDED) folded.delete(last);
  }

  const TABS = { timeline: "Timeline", messages: "Messages", decisions: "Hook decisions", problems: "Problems" };
  const KINDS = { model: "models", tool: "tools", decision: "decisions", note: "other events" };
  let tab = "timeline", picked = -1, shown = [], wanted = "", without = new Set(), texts = null;

  const textOf = (at) => {
    texts ??= rows.map((row) => [row[NAME], row[HINT], row[STATUS], ...row[SECTIONS].flat()].join("\n").toLowerCase());
    return texts[at];
  };
  const fits = (at) => {
    const row = rows[at];
    if (tab === "decisions" && row[KIND] !== "decision") return false;
    if (tab === "problems" && !isBad(row)) return false;
    return !without.has(row[KIND]) && (!wanted || textOf(at).includes(wanted));
  };

  const choose = () => {
    shown = [];
    if (tab === "decisions" || tab === "problems") {
      rows.forEach((_, at) => { if (fits(at)) shown.push(at); });
    } else {
      // With a search the way to each row that fits is shown as well.
      const kept = wanted ? new Set() : null;
      if (kept) rows.forEach((_, at) => {
        if (fits(at)) for (let up = at; up >= 0 && !kept.has(up); up = parents[up]) kept.add(up);
      });
      for (let at = 0; at < rows.length; at += 1) {
        if (kept ? kept.has(at) : !without.has(rows[at][KIND])) shown.push(at);
        if (!kept && folded.has(at)) at += sizes[at];
      }
    }
    space.style.height = `${shown.length * HEIGHT}px`;
    none.hidden = shown.length > 0;
    count.textContent = tab === "messages" ? `${number(said.length)} messages` : `${number(shown.length)} of ${number(rows.length)} steps`;
    draw();
  };

  const mark = (element, text) => {
    const at = wanted ? text.toLowerCase().indexOf(wanted) : -1;
    if (at < 0 || text.toLowerCase().length !== text.length) {
      element.textContent = text;
      return element;
    }
    element.append(text.slice(0, at), make("mark", "", text.slice(at, at + wanted.length)), text.slice(at + wanted.length));
    return element;
  };

  const rowOf = (at, place) => {
    const row = rows[at], isFlat = tab !== "timeline";
    const element = make("div", `row ${row[KIND]}${isBad(row) ? " bad" : ""}${at === picked ? " picked" : ""}`);
    element.id = `row-${at}`;
    element.setAttribute("role", "treeitem");
    element.setAttribute("aria-level", row[DEPTH] + 1);
    element.setAttribute("aria-selected", at === picked);
    element.style.top = `${place * HEIGHT}px`;
    const label = make("div", "label");
    label.style.paddingLeft = `${isFlat ? 0 : Math.min(row[DEPTH], 24) * 16}px`;
    const opens = sizes[at] > 0 && !isFlat;
    const twist = make("span", "twist", opens ? (folded.has(at) && !wanted ? "▶" : "▼") : "");
    if (opens) {
      element.setAttribute("aria-expanded", !folded.has(at));
      twist.addEventListener("click", (event) => { event.stopPropagation(); fold(at); });
    }
    label.append(twist, make("span", "dot"), mark(make("span", "name"), row[NAME]));
    if (isBad(row)) label.append(make("span", "state", row[STATUS]));
    else if (opens && troubles[at] && folded.has(at)) label.append(make("span", "state", `${troubles[at]} ${troubles[at] === 1 ? "problem" : "problems"}`));
    label.append(mark(make("span", "hint"), row[HINT]));
    // A turn is shown within the whole session, and what is inside of it within the turn.
    const top = row[DEPTH] === 0 ? whole : rows[tops[at]], width = Math.max(top[END] - top[START], 0.001);
    const when = make("div", "when"), bar = make("i");
    const left = Math.min(Math.max((row[START] - top[START]) / width, 0), 1) * 100;
    bar.style.left = `${Math.min(left, 98.5)}%`;
    bar.style.width = `${Math.min(((row[END] - row[START]) / width) * 100, 100 - left)}%`;
    when.append(bar);
    const tokens = row[READ] || row[WRITTEN] ? `${short(row[READ])} + ${short(row[WRITTEN])}` : "";
    const time = row[KIND] === "note" ? "" : duration(row[END] - row[START]);
    element.append(label, when, make("span", "n", time), make("span", "n", tokens), make("span", "n", row[COST] ?? ""));
    element.addEventListener("click", () => pick(at));
    element.addEventListener("dblclick", () => opens && fold(at));
    return element;
  };

  let isPrinting = false;
  const draw = () => {
    const first = isPrinting ? 0 : Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 12);
    const last = isPrinting ? MOST_PRINTED : first + Math.ceil(list.clientHeight / HEIGHT) + 24;
    space.replaceChildren(...shown.slice(first, last).map((at, offset) => rowOf(at, first + offset)));
    if (isPrinting && shown.length > MOST_PRINTED) space.append(make("p", "empty", `${number(shown.length - MOST_PRINTED)} more steps are not printed; search or fold to choose.`));
    if (picked >= 0) list.setAttribute("aria-activedescendant", `row-${picked}`);
  };

  const fold = (at) => {
    if (!folded.delete(at)) folded.add(at);
    choose();
  };
  const reveal = (at) => {
    for (let up = parents[at]; up >= 0; up = parents[up]) folded.delete(up);
    if (!shown.includes(at)) choose();
  };
  const section = (title, text, isError) => {
    const element = make("div", isError ? "error" : "");
    element.append(make("h3", "", title), mark(make("pre"), text));
    return element;
  };
  const pick = (at) => {
    if (at === undefined || at < 0) return;
    picked = at;
    const row = rows[at], place = shown.indexOf(at);
    if (place >= 0) {
      const top = place * HEIGHT;
      if (top < list.scrollTop) list.scrollTop = top;
      else if (top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + HEIGHT - list.clientHeight;
    }
    const facts = [row[KIND], row[STATUS], `at ${duration(row[START])}`, `for ${duration(row[END] - row[START])}`];
    if (row[READ] || row[WRITTEN]) facts.push(`${number(row[READ])} tokens read, ${number(row[WRITTEN])} written`);
    if (row[COST]) facts.push(row[COST]);
    details.replaceChildren(make("h2", "", row[NAME]), make("p", "about", facts.join(" · ")));
    for (const [title, text] of row[SECTIONS]) details.append(section(title, text, title === "Error" || title === "Failure"));
    if (!row[SECTIONS].length) details.append(make("p", "about", "The log tells nothing more of it."));
    details.scrollTop = 0;
    draw();
  };
  const move = (by) => {
    const place = shown.indexOf(picked);
    pick(shown[place < 0 ? 0 : Math.min(Math.max(place + by, 0), shown.length - 1)]);
  };
  const nextProblem = (by) => {
    for (let step = 1; step <= rows.length; step += 1) {
      const at = (((picked < 0 && by < 0 ? 0 : picked) + by * step) % rows.length + rows.length) % rows.length;
      if (isBad(rows[at])) {
        if (tab === "messages" || tab === "decisions") show("timeline");
        reveal(at);
        return pick(at);
      }
    }
  };

  // Whose turn a row belongs to, and in how many others that turn is.
  const turnAround = (at) => {
    let name = "", depth = -1;
    for (let up = at; up >= 0; up = parents[up]) {
      if (rows[up][KIND] !== "turn") continue;
      name ||= rows[up][NAME];
      depth += 1;
    }
    return [name, depth];
  };

  // Messages come in portions: the next one when the end of the last is near.
  const NAMES = { user: "Prompt", assistant: "Model", thinking: "Thinking", call: "Tool call", tool: "Tool result", compaction: "Shortened here" };
  let written = 0, portions = [];
  const near = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && addMessages(PAGE));
  const addMessages = (most) => {
    const end = Math.min(portions.length, written + most);
    for (; written < end; written += 1) {
      const [role, at, place] = portions[written];
      const [title, text] = rows[at][SECTIONS][place] ?? ["", ""];
      const isError = title === "Error" || title === "Failure";
      const element = make("article", `said ${NAMES[role] ? role : "system"}${isError ? " error" : ""}`);
      const head = make("h3"), open = make("button", "", "in the timeline");
      const isInjected = rows[at][KIND] === "decision", [who, depth] = turnAround(at);
      if (isInjected) element.className = "said system";
      let label = isInjected ? `Injected as ${role} by ${rows[at][NAME]}` : NAMES[role] ?? role;
      if (role === "tool") label += `: ${rows[at][NAME]}`;
      if (role === "compaction") label += `: ${rows[at][HINT]}`;
      if (depth > 0) label += ` · ${who}`;
      element.style.marginLeft = `${Math.min(depth, 4) * 28}px`;
      head.append(make("span", "", label));
      open.type = "button";
      open.addEventListener("click", () => { show("timeline"); reveal(at); pick(at); list.focus(); });
      head.append(open);
      element.append(head, mark(make("pre"), text));
      talk.append(element);
    }
    near.disconnect();
    if (written < portions.length) near.observe(talk.lastElementChild);
  };
  const showMessages = () => {
    portions = wanted ? said.filter(([, at, place]) => (rows[at][SECTIONS][place]?.[1] ?? "").toLowerCase().includes(wanted)) : said;
    written = 0;
    talk.replaceChildren();
    if (portions.length) addMessages(PAGE);
    else talk.append(make("p", "empty", "Nothing fits."));
  };

  const show = (name) => {
    tab = name;
    for (const button of byId("tabs").children) button.setAttribute("aria-selected", button.dataset.tab === tab);
    main.hidden = tab === "messages";
    talk.hidden = tab !== "messages";
    for (const id of ["kinds", "fold", "unfold"]) byId(id).hidden = tab === "messages";
    if (tab === "messages") showMessages();
    list.scrollTop = 0;
    choose();
  };
  for (const [name, title] of Object.entries(TABS)) {
    const amount = name === "decisions" ? rows.filter((row) => row[KIND] === "decision").length : name === "problems" ? rows.filter(isBad).length : null;
    const button = make("button", "", amount === null ? title : `${title} ${number(amount)}`);
    button.type = "button";
    button.dataset.tab = name;
    button.setAttribute("role", "tab");
    button.addEventListener("click", () => show(name));
    byId("tabs").append(button);
  }
  for (const [kind, title] of Object.entries(KINDS)) {
    const button = make("button", kind, title);
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      if (!without.delete(kind)) without.add(kind);
      button.setAttribute("aria-pressed", !without.has(kind));
      choose();
    });
    byId("kinds").append(button);
  }
  search.addEventListener("input", () => {
    wanted = search.value.trim().toLowerCase();
    if (tab === "messages") showMessages();
    list.scrollTop = 0;
    choose();
  });
  byId("fold").addEventListener("click", () => { rows.forEach((_, at) => { if (sizes[at]) folded.add(at); }); choose(); });
  byId("unfold").addEventListener("click", () => { folded.clear(); choose(); });
  byId("help-open").addEventListener("click", () => help.showModal());
  list.addEventListener("scroll", draw, { passive: true });
  addEventListener("resize", draw);
  addEventListener("beforeprint", () => { isPrinting = true; if (tab === "messages") addMessages(portions.length); draw(); });
  addEventListener("afterprint", () => { isPrinting = false; draw(); });

  const KEYS = {
    ArrowDown: () => move(1), ArrowUp: () => move(-1), PageDown: () => move(15), PageUp: () => move(-15),
    Home: () => pick(shown[0]), End: () => pick(shown[shown.length - 1]),
    ArrowRight: () => (picked >= 0 && folded.has(picked) ? fold(picked) : move(1)),
    ArrowLeft: () => {
      if (picked >= 0 && sizes[picked] && !folded.has(picked) && tab === "timeline") fold(picked);
      else if (picked >= 0 && parents[picked] >= 0) pick(parents[picked]);
    },
    n: () => nextProblem(1), p: () => nextProblem(-1), Enter: () => details.focus(), "?": () => help.showModal(),
    "/": () => search.focus(), Escape: () => { search.value = ""; search.dispatchEvent(new Event("input")); list.focus(); },
    1: () => show("timeline"), 2: () => show("messages"), 3: () => show("decisions"), 4: () => show("problems"),
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    const isTyping = event.target === search, isOnButton = event.target.closest?.("button");
    if (isTyping && event.key !== "Escape" && event.key !== "ArrowDown") return;
    if (event.target === details && event.key !== "Escape" && event.key.length > 1) return;
    if (isOnButton && event.key === "Enter") return;
    if (!Object.hasOwn(KEYS, event.key) || (tab === "messages" && event.key.length > 1 && event.key !== "Escape")) return;
    event.preventDefault();
    if (isTyping && event.key === "ArrowDown") list.focus();
    KEYS[event.key]();
  });

  show("timeline");
  const trouble = rows.findIndex((row) => isBad(row) && row[KIND] !== "turn");
  pick(rows.length && trouble >= 0 && rows.length <= UNFOLDED ? trouble : shown[0]);
  list.scrollTop = 0;
  draw();
})();
