// What the page shows. Whatever comes from a model or a person is text: nothing here makes markup of it.

export function node(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, String(value));
  }
  made.append(...children.filter((child) => child != null).map((child) => child instanceof Node ? child : String(child)));
  return made;
}

export function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

export function titleOf(session) {
  return session.name || session.prompt || "A new session";
}

export function timeOf(seconds) {
  return seconds ? new Date(seconds * 1000).toLocaleString() : "";
}

export function factsOf(session) {
  const facts = [session.state, timeOf(session.updated || session.created)];
  if (session.turn_count) facts.push(counted(session.turn_count, "turn"));
  if (session.cost_usd) facts.push(`$${session.cost_usd}`);
  return node("div", { class: "facts" }, facts.filter(Boolean).join(" · "));
}

// A diff in a question: added and removed lines differ by their sign and by colour.
export function promptOf(text) {
  const shown = node("pre", { tabindex: 0, "aria-label": "What is asked" });
  for (const line of text.split("\n")) {
    const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
    shown.append(node("span", kind ? { class: kind } : {}, line), "\n");
  }
  return shown;
}

// What a tool asks has a schema: a choice is answered by a button, all else by what is written.
const CHOICE = (schema) => (schema.type === "boolean" ? [["Yes", true], ["No", false]]
  : Array.isArray(schema.enum) ? schema.enum.map((each) => [String(each), each]) : null);

function fieldOf(name, schema, required) {
  const choices = CHOICE(schema);
  const numeric = schema.type === "number" || schema.type === "integer";
  const plain = numeric || schema.type === "string";
  const input = choices
    ? node("select", { name }, ...(required ? [] : [node("option", { value: "" }, "")]),
      ...choices.map(([text], place) => node("option", { value: place }, text)))
    : node(plain ? "input" : "textarea", {
      name, required, autocomplete: "off", ...(plain ? { type: numeric ? "number" : "text" } : { placeholder: "JSON" }),
      ...(numeric ? { step: schema.type === "integer" ? 1 : "any" } : {}),
    });
  const read = () => {
    if (input.value === "" && (!required || numeric)) return undefined;
    if (choices) return choices[Number(input.value)][1];
    return schema.type === "string" ? input.value : JSON.parse(input.value);
  };
  const label = schema.title || name || "Your answer";
  return { read, shown: node("label", {}, label, schema.description ? node("span", { class: "facts" }, schema.description) : null, input) };
}

function formOf(schema, answer) {
  const form = schema.type === "object" && schema.properties;
  const required = form ? new Set(schema.required || []) : new Set([""]);
  const fields = Object.entries(form ? schema.properties : { "": schema })
    .map(([name, each]) => [name, fieldOf(name, each, required.has(name))]);
  const value = () => {
    const given = fields.map(([name, field]) => [name, field.read()]).filter(([, each]) => each !== undefined);
    return form ? Object.fromEntries(given) : given[0]?.[1];
  };
  return node("form", { onsubmit: (event) => { event.preventDefault(); answer(() => ({ answer: value() })); } },
    ...fields.map(([, field]) => field.shown), node("button", { class: "main" }, "Answer"));
}

export function questionOf(question, answer, mayAnswer) {
  const choose = (text, given, main) => node("button", {
    type: "button", class: main ? "main" : "", disabled: !mayAnswer, onclick: () => answer(question, () => given, text),
  }, text);
  const { schema } = question;
  const choices = schema && CHOICE(schema);
  // the narrowest answer stands out; those that allow more are chosen on purpose
  const buttons = schema
    ? [...(choices || []).map(([text, value]) => choose(text, { answer: value })), choose("Do not answer", { declined: true })]
    : question.options.map((option, place) => choose(option, { option }, !place));
  return node("section", { class: "card asks", role: "group", "aria-label": "A question", id: `q-${question.approval_id}` },
    node("h3", {}, schema ? "A tool asks" : "The session asks"),
    question.agents ? node("div", { class: "facts" }, `For ${question.agents.join(" › ")}`) : null,
    promptOf(question.prompt), schema && !choices && mayAnswer ? formOf(schema, (given) => answer(question, given, "sent")) : null,
    node("div", { class: "buttons" }, ...buttons));
}

// A tool call as it goes: what it does now, such as the step of a child, and at the end its result.
export function callOf(event) {
  const summary = node("summary", {}, `${event.name} · runs`);
  const now = node("div", { class: "facts" });
  const result = node("pre", { "aria-label": "Result", hidden: true });
  const shown = node("details", { class: "card" }, summary, now,
    node("pre", { "aria-label": "Arguments" }, JSON.stringify(event.arguments, null, 1)), result);
  const take = (next) => {
    if (next.type === "tool_progress") {
      const steps = next.done == null ? "" : ` · ${next.done}${next.total == null ? "" : ` of ${next.total}`}`;
      summary.textContent = `${event.name} · ${next.message}${steps}`;
    } else if (next.type === "tool_output") {
      now.append(node("div", {}, next.text));
    } else if (next.type === "tool_finished") {
      summary.textContent = `${event.name} · ${next.success ? "finished" : "failed"}`;
      summary.className = next.success ? "" : "failed";
      result.textContent = next.output;
      result.hidden = false;
    }
  };
  take(event);
  return { shown, take };
}

export function childrenOf(children) {
  return node("ul", { class: "list", "aria-label": "Children" }, ...children.map((child) => node("li", {},
    child.agent_name || child.session_id, node("div", { class: "text" }, child.prompt), factsOf(child))));
}

export function costTable(days, tenant) {
  const most = Math.max(1, ...days.map((day) => day.input_tokens + day.output_tokens));
  // who owns the server sees all tenants
  const several = days.some((day) => day.tenant !== tenant);
  const rows = days.map((day) => node("tr", {},
    node("th", { scope: "row" }, day.day), several ? node("td", {}, day.tenant) : null, node("td", { class: "number" }, day.turns),
    node("td", { class: "number" }, day.input_tokens + day.output_tokens),
    node("td", { class: "wide" }, node("progress", {
      max: most, value: day.input_tokens + day.output_tokens, "aria-label": `Tokens of ${day.tenant} on ${day.day}`,
    })), node("td", { class: "number" }, `$${day.cost_usd}`)));
  const head = [["Day", ""], ...(several ? [["Tenant", ""]] : []), ["Turns", "number"], ["Tokens", "number"], ["", "wide"], ["Cost", "number"]];
  return node("table", {}, node("caption", {}, several ? "All tenants, by day in UTC" : `Tenant ${tenant}, by day in UTC`),
    node("thead", {}, node("tr", {}, ...head.map(([name, kind]) => node("th", { scope: "col", class: kind }, name)))),
    node("tbody", {}, ...rows));
}

const units = { cost_usd: "US dollars", tokens: "tokens", turns: "turns at once", requests: "requests at once" };

export function limitsOf(accounts, paused, tenant) {
  const several = accounts.some((account) => account.tenant !== tenant);
  const rows = accounts.map(({ unit, window, tenant: owner, limit, spent, reserved, renews }) => {
    const used = window ? spent : reserved;
    const held = window && Number(reserved) ? `, ${reserved} reserved` : "";
    return node("tr", {},
      node("th", { scope: "row" }, window ? `${units[unit]} a ${window}` : units[unit]), several ? node("td", {}, owner) : null,
      node("td", { class: "number" }, `${used} of ${limit}${held}`),
      node("td", { class: "wide" }, node("progress", {
        max: limit, value: Number(spent) + Number(reserved), "aria-label": `What ${owner} uses: ${units[unit]}`,
      })), node("td", {}, renews ? renews.replace("T", " ").replace("Z", " UTC") : ""));
  });
  const head = [["Limit", ""], ...(several ? [["Tenant", ""]] : []), ["Used", "number"], ["", "wide"], ["Renews", ""]];
  const waits = paused.map(({ account, seconds }) => node("p", { class: "failed" },
    `${account} asks all to wait for ${Math.ceil(seconds)} s more.`));
  if (!rows.length) return waits;
  return [...waits, node("h2", {}, "Limits"), node("table", {}, node("caption", {}, "Of all processes together"),
    node("thead", {}, node("tr", {}, ...head.map(([name, kind]) => node("th", { scope: "col", class: kind }, name)))),
    node("tbody", {}, ...rows))];
}

export function traceOf(rows) {
  const end = Math.max(1, ...rows.map((row) => row[5]));
  if (!rows.length) return node("p", { class: "facts" }, "Nothing is recorded here.");
  return node("ul", { class: "list" }, ...rows.map(([kind, depth, name, hint, start, stop, status, , , , sections]) =>
    node("li", { class: `depth-${Math.min(depth, 5)}` }, node("details", {},
      node("summary", { class: status === "ok" ? "" : "failed" },
        `${name} · ${kind} · ${Math.round(stop - start)} ms · ${status}`),
      node("div", { class: "facts" }, hint),
      node("progress", { max: end, value: stop - start, "aria-label": `Duration of ${name}` }),
      ...sections.map(([title, text]) => node("div", {}, node("h3", {}, title), node("pre", {}, text)))))));
}
