// The page of a server: it asks this server alone, with the token that a person gave it.
import { callOf, childrenOf, costTable, counted, factsOf, limitsOf, node, questionOf, titleOf, traceOf } from "./views.js";

const main = document.getElementById("main");
const status = document.getElementById("status");
let token = sessionStorage.getItem("token");
let caller = null;
let view = null; // ended when another page is shown

const ENDS = { turn_result: "The turn has finished", turn_failed: "The turn has failed", turn_cancelled: "The turn was cancelled" };

const say = (text) => { status.textContent = text; };
const may = () => caller && caller.role !== "reader";

async function ask(path, options = {}) {
  const headers = { Authorization: `Bearer ${token}`, ...(options.body ? { "Content-Type": "application/json" } : {}) };
  const answer = await fetch(path, { ...options, headers: { ...headers, ...options.headers } });
  if (answer.status === 401) { leave(); throw new Error("The token is not known"); }
  if (!answer.ok) throw Object.assign(new Error((await answer.json()).error.message), { status: answer.status });
  return answer;
}

const read = async (path) => (await ask(path)).json();
const post = (path, body = {}) => ask(path, { method: "POST", body: JSON.stringify(body) });
const place = (id) => `/sessions/${encodeURIComponent(id)}`;

function leave() {
  sessionStorage.removeItem("token");
  token = caller = null;
  show();
}

function signIn() {
  const input = node("input", { type: "password", autocomplete: "off", required: true, name: "token" });
  main.replaceChildren(node("h2", {}, "Sign in"), node("form", {
    onsubmit: (event) => {
      event.preventDefault();
      token = input.value.trim();
      sessionStorage.setItem("token", token);
      show();
    },
  }, node("label", {}, "Token", input), node("button", { class: "main" }, "Sign in")));
  input.focus();
}

async function sessions() {
  const list = node("ul", { class: "list", "aria-label": "Sessions" });
  const search = node("input", { type: "search", name: "search", maxlength: 200 });
  const load = async () => {
    const found = await read(`/sessions?limit=100&search=${encodeURIComponent(search.value)}`);
    list.replaceChildren(...found.sessions.map((session) => node("li", {},
      node("a", { href: `#${place(session.session_id)}` }, titleOf(session)), factsOf(session))));
    say(counted(found.sessions.length, "session"));
  };
  const begin = async () => {
    const begun = await (await post("/sessions")).json();
    location.hash = place(begun.session_id);
  };
  main.replaceChildren(node("h2", {}, "Sessions"),
    node("form", { role: "search", onsubmit: (event) => { event.preventDefault(); guard(load()); } },
      node("label", {}, "Search", search), node("button", {}, "Search"),
      may() ? node("button", { type: "button", class: "main", onclick: () => guard(begin()) }, "New session") : null),
    list);
  await load();
}

async function answer(question, given, text) {
  const id = question.session_id;
  await post(`${place(id)}/approvals/${encodeURIComponent(question.approval_id)}`, given());
  say(`Answered: ${text}`);
  document.getElementById(`q-${question.approval_id}`)?.remove();
  await countQuestions();
}

async function questions() {
  const found = (await read("/questions")).questions;
  main.replaceChildren(node("h2", {}, "Questions"), ...found.map((question) => node("div", {},
    node("a", { href: `#${place(question.session_id)}` }, "Its session"),
    questionOf(question, (...given) => guard(answer(...given)), may()))));
  if (!found.length) main.append(node("p", {}, "Nothing is asked."));
  say(counted(found.length, "open question"));
}

async function cost() {
  const [{ days, tenant }, { accounts, paused }] = await Promise.all([read("/cost"), read("/limits")]);
  main.replaceChildren(node("h2", {}, "Cost"), costTable(days, tenant), ...limitsOf(accounts, paused, tenant));
}

async function session(id, mine) {
  const found = await read(place(id));
  const turns = node("div", { role: "log", "aria-label": "Events", "aria-live": "polite" });
  const prompt = node("textarea", { name: "prompt", rows: 3, required: true });
  const send = node("button", { class: "main" }, "Send");
  const cancel = node("button", { type: "button", disabled: true }, "Cancel the turn");
  const family = node("section", { "aria-label": "What its agents made" });
  const more = node("div", {});
  const title = node("h2", {}, titleOf(found));
  let facts = factsOf(found);
  const renew = async () => {
    const now = await read(place(id));
    const shown = factsOf(now);
    title.textContent = titleOf(now);
    facts.replaceWith(shown);
    facts = shown;
    const { children } = await read(`${place(id)}/children`);
    family.replaceChildren(...(children.length ? [node("h2", {}, "Children"), childrenOf(children)] : []));
    await countQuestions();
    // the last event of a turn comes before its record
    if (now.state === "running" && running === null) renewSoon(1000);
  };
  // once for all events that come together, as those of earlier turns do
  let timer = null;
  const renewSoon = (wait = 200) => {
    clearTimeout(timer);
    timer = setTimeout(() => { if (!mine.signal.aborted) guard(renew()); }, wait);
  };
  let running = null;
  const form = node("form", {
    onsubmit: (event) => {
      event.preventDefault();
      guard(post(`${place(id)}/turns`, { prompt: prompt.value }).then(() => { prompt.value = ""; }));
    },
  }, node("label", {}, "Prompt", prompt), send, cancel);
  prompt.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  cancel.addEventListener("click", () => guard(post(`${place(id)}/turns/${encodeURIComponent(running)}/cancel`)));
  const steps = async () => {
    const trace = await read(`${place(id)}/trace`);
    more.replaceChildren(node("h2", {}, "Trace"), traceOf(trace.rows));
    more.querySelector("summary")?.focus();
  };
  main.replaceChildren(title, facts, turns, ...(may() ? [form] : []), family,
    node("button", { type: "button", onclick: () => guard(steps()) }, "Show the trace"), more);

  const calls = new Map();
  let text = null;
  const take = (event) => {
    if (event.type !== "text_delta") text = null;
    switch (event.type) {
      case "turn_started":
        running = event.turn_id;
        renewSoon();
        if (event.prompt) turns.append(node("div", { class: "card" }, node("h3", {}, "You"), node("p", { class: "text" }, event.prompt)));
        turns.append(node("h3", { class: "running", id: `t-${running}` }, "Turn"));
        break;
      case "text_delta":
        if (!text) turns.append(text = node("p", { class: "text" }));
        text.append(event.text);
        break;
      case "tool_started": case "tool_progress": case "tool_output": case "tool_finished": {
        let call = calls.get(event.id);
        if (call) call.take(event);
        else {
          calls.set(event.id, call = callOf(event));
          turns.append(call.shown);
        }
        if (event.type === "tool_progress") renewSoon(); // a child may have begun
        break;
      }
      case "approval_requested":
        turns.append(questionOf({ ...event, session_id: id }, (...given) => guard(answer(...given)), may()));
        say("The session asks");
        renewSoon();
        break;
      case "approval_answered": case "approval_withdrawn":
        document.getElementById(`q-${event.approval_id}`)?.remove();
        break;
      case "turn_result": case "turn_failed": case "turn_cancelled":
        calls.clear();
        document.getElementById(`t-${running}`)?.classList.remove("running");
        running = null;
        if (event.error) turns.append(node("p", { class: "failed" }, event.error.message));
        say(ENDS[event.type]);
        renewSoon();
    }
    send.disabled = running !== null;
    cancel.disabled = running === null;
  };
  follow(id, mine, take);
}

// EventSource sends no token, so the stream is read here; after a lost connection from the last event on.
async function follow(id, mine, take) {
  let last = "0";
  while (!mine.signal.aborted) {
    try {
      const answer = await ask(`${place(id)}/events`, { headers: { "Last-Event-ID": last }, signal: mine.signal });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const frames = (rest + value).split("\n\n");
        rest = frames.pop();
        for (const frame of frames.filter((each) => each.startsWith("id: "))) {
          const [number, data] = frame.split("\n");
          last = number.slice(4);
          take(JSON.parse(data.slice(6)));
        }
      }
    } catch (error) {
      if (mine.signal.aborted || !token) return;
      if (error.status === 404) { say("The session was deleted"); return; }
      say("The connection is lost; trying again");
    }
    await new Promise((resume) => setTimeout(resume, 1000));
  }
}

async function countQuestions() {
  if (!token) return;
  const badge = document.getElementById("open-questions");
  const count = (await read("/questions")).questions.length;
  badge.textContent = count;
  badge.hidden = !count;
}

function guard(work) {
  return work.catch((error) => { if (error.name !== "AbortError") say(error.message); });
}

async function show() {
  view?.abort();
  const mine = view = new AbortController();
  document.querySelector("nav").hidden = document.getElementById("leave").hidden = !token;
  document.getElementById("caller").textContent = "";
  say("");
  if (!token) return signIn();
  caller = await read("/me");
  document.getElementById("caller").textContent = `${caller.name} · ${caller.role} · tenant ${caller.tenant}`;
  const path = location.hash.slice(1) || "/sessions";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${path}`) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  const [, name, id] = path.split("/");
  if (name === "sessions" && id) await session(decodeURIComponent(id), mine);
  else if (name === "questions") await questions();
  else if (name === "cost") await cost();
  else await sessions();
  main.focus();
  await countQuestions();
}

document.getElementById("leave").addEventListener("click", leave);
addEventListener("hashchange", () => guard(show()));
setInterval(() => guard(countQuestions()), 10000);
guard(show());
