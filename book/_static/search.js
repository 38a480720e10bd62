// The search: pages whose titles and headings have the words come first, each page once, and leads to
// its sections that have the words. The page of results loads this before Sphinx's own script begins to
// search (book/_ext/typography.py), every other page when a reader begins to type (reading.js).

const MOST = 3; // sections of a page
const FIRST = 8; // pages that are listed while a reader types
const TERM = "#term-"; // how the place of a term of the glossary begins
const SILENT = ":scope section, :is(h1, h2, h3, h4), details, .cell_output pre, div.math, style, svg, .linenos, .headerlink";

// An equation as text: between the parts of its fractions, and before what stands low or high.
const SIGNS = { "mfrac > :last-child": "/", ":is(msub, msubsup) > :nth-child(2)": "_", "msup > :last-child, msubsup > :last-child": "^" };

const find = Search._performSearch;
Search._performSearch = (query, ...words) => {
  const asked = query.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text) => asked.every((word) => text.toLowerCase().includes(word));
  const { alltitles, docnames } = Search._index;
  const headed = new Set(Object.entries(alltitles).flatMap(([title, places]) => (has(title) ? places.map(([at]) => docnames[at]) : [])));
  const found = find(query, ...words).reverse(); // the best first
  const terms = new Set(found.filter(([, , anchor]) => anchor.startsWith(TERM)).map(([page]) => page));
  const begins = (title) => title.toLowerCase().replace(/^<span.*<\/span>/, "").startsWith(query.toLowerCase().trim());
  const better = ([page, title, , description]) =>
    description ? -200 * !/[_.]/.test(query) // a name of the module comes last, unless one is asked for
      : 200 * has(title) + 100 * begins(title) + 50 * headed.has(page);
  const chapter = ([, title]) => parseInt(title.replace(/<[^>]*>/g, "")) || Infinity; // its number
  const places = new Map();
  for (const [page, title, anchor, description, score, file] of found) {
    const term = anchor.startsWith(TERM);
    if (terms.has(page) && !term) continue;
    const name = term ? `${anchor.slice(TERM.length).replaceAll("-", " ")} (${title})` : title.split(" > ")[0];
    const place = term || description ? anchor : "";
    const each = [page, name, place, description, score, file];
    if (!term) each[4] += better(each);
    const known = places.get(page + place);
    if (!known || known[4] < each[4]) places.set(page + place, each);
  }
  return [...places.values()].sort((one, other) => other[4] - one[4] || chapter(one) - chapter(other) || 0).reverse(); // Sphinx takes the last first
};

/** What a section says itself, without its heading, the sections within it, drawings and folded code. */
function said(section) {
  const own = section.cloneNode(true);
  for (const part of own.querySelectorAll(SILENT)) part.remove();
  for (const cell of own.querySelectorAll("dt, td, th, p")) cell.append(" ");
  for (const [parts, sign] of Object.entries(SIGNS)) for (const part of own.querySelectorAll(parts)) part.prepend(sign);
  for (const accent of own.querySelectorAll("mover > :last-child")) if (/[ˆ^]/.test(accent.textContent)) accent.textContent = "\u0302";
  return own.textContent.replace(/\s+/g, " ").trim();
}

Search.makeSearchSummary = (html, keywords, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  if (anchor.startsWith(TERM)) {
    const meaning = page.getElementById(anchor.slice(1)).nextElementSibling;
    return Object.assign(document.createElement("p"), { className: "context", textContent: said(meaning) });
  }
  const name = page.querySelector("meta[name=page]").content;
  const words = [...keywords].map((word) => word.toLowerCase());
  const among = (text) => words.filter((word) => text.toLowerCase().includes(word));
  const found = [...page.querySelectorAll("article section[id]")]
    .map((section) => {
      const heading = section.querySelector("h1, h2, h3, h4");
      const [title, text] = [heading.textContent.replace(/#$/, ""), said(section)];
      return { section, heading, title, text, hits: among(text), weight: among(`${title} ${text}`).length + among(title).length };
    })
    .filter(({ weight }) => weight)
    .sort((one, other) => other.weight - one.weight)
    .slice(0, MOST);
  const list = document.createElement("ul");
  list.className = "context";
  for (const { section, heading, title, text, hits } of found) {
    const near = Math.max(0, text.toLowerCase().indexOf(hits[0] ?? " ") - 80);
    const place = text.lastIndexOf(" ", near) + 1; // whole words
    const item = document.createElement("li");
    if (heading.tagName !== "H1") {
      // The title of the page stands above.
      const link = Object.assign(document.createElement("a"), { href: `${name}.html#${section.id}`, textContent: title });
      item.append(link, " ");
    }
    item.append(`${place ? "… " : ""}${text.slice(place, place + 200).replace(/\s\S*$/, "")} …`);
    list.append(item);
  }
  return list;
};

/** The way to the page of results. */
function everything(words) {
  const address = `${document.documentElement.dataset.content_root}search.html?q=${encodeURIComponent(words)}`;
  const item = Object.assign(document.createElement("li"), { className: "everything" });
  item.append(Object.assign(document.createElement("a"), { href: address, textContent: "All results" }));
  return item;
}

/** List the first pages that have what is typed, under the field. */
function suggest({ value: typed }) {
  const value = typed.replace(/^what(?: is|'s|’s| are)(?: an?| the)? /i, "");
  const words = Search._parseQuery(value);
  localStorage.removeItem("sphinx_highlight_terms"); // no page was asked for yet
  const found = value.trim() ? Search._performSearch(...words).reverse() : [];
  const means = ([, title]) => typed !== value && title.startsWith(`${value.toLowerCase().trim()} (`); // what it is stands in the glossary
  const results = [...found.filter(means), ...found.filter((each) => !means(each))].slice(0, FIRST);
  const equation = /^eq(?:uation|\.)?\s*\(?([1-4])\)?$/i.exec(value.trim())?.[1];
  if (equation) results.unshift(["book/annotated", `Equation (${equation}), line by line`, `#equation-${equation}`, ""]);
  suggestions.replaceChildren(
    ...results.map(([page, title, anchor, description]) => {
      const link = Object.assign(document.createElement("a"), { href: `${document.documentElement.dataset.content_root}${page}.html${anchor}` });
      link.innerHTML = description ? `${title} (${description})` : title;
      const item = document.createElement("li");
      item.append(link);
      return item;
    }),
    ...(results.length ? [everything(value)] : []),
  );
}

/** Go through what is listed with the arrows; Enter follows the place, in the field the first one. */
function choose(event) {
  const links = [...suggestions.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!links.length || event.isComposing) return;
  if (step) {
    event.preventDefault();
    (links[Math.min(at + step, links.length - 1)] ?? asked).focus();
  } else if (event.key === "Enter" && at < 0) {
    event.preventDefault();
    links[0].click();
  }
}

const asked = document.querySelector("#pst-search-dialog input");
const suggestions = Object.assign(document.createElement("ul"), { className: "suggestions" });
if (asked) {
  asked.form.after(suggestions);
  asked.addEventListener("input", () => suggest(asked));
  asked.closest("dialog").addEventListener("keydown", choose);
  suggest(asked);
}
