// The reading layer of a page, see book/_ext/folding.py: how much of the code is shown, symbols that
// light up together, pictures that enlarge. What is chosen is remembered; nothing leaves the page.

const root = document.documentElement;

/** Show what `choice` says: "read", "code" (with the code of the argument), or "all". */
function show(choice) {
  root.dataset.read = choice;
  for (const fold of document.querySelectorAll("details.fold")) fold.open = choice === "all";
  for (const own of document.querySelectorAll("details.own")) own.classList.remove("opened");
}

for (const input of document.querySelectorAll(".reading input")) {
  input.checked = input.value === root.dataset.read;
  input.addEventListener("change", () => {
    localStorage.setItem("read", input.value);
    show(input.value);
  });
}
if (root.dataset.read === "all") show("all");

// In *Read* the code of the argument is hidden by style, so that nothing jumps while a page loads.
for (const summary of document.querySelectorAll("details.own > summary")) {
  summary.addEventListener("click", (event) => {
    event.preventDefault();
    summary.parentElement.classList.toggle("opened");
  });
}

// Sphinx, which marks in a page what was searched for, asks the titles of drawings too for their box.
SVGElement.prototype.getBBox ??= () => new DOMRect();

// A link into something folded opens it.
function unfold() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement?.closest("details")) {
    if (at.matches("details")) at.open = true;
  }
}
addEventListener("hashchange", unfold);
unfold();

// Where a reader has been, for the marks beside chapters: opened, or read to the end.
const readPages = () => JSON.parse(localStorage.getItem("been") ?? "{}");
const here = document.querySelector("meta[name=page]")?.content;

function wasHere(how) {
  const been = readPages();
  if (been[here] !== "read") been[here] = how;
  localStorage.setItem("been", JSON.stringify(been));
  mark(been);
}
function mark(been) {
  for (const link of document.querySelectorAll(".bd-links a, ul.cards a:not(.plays), a.right-next")) {
    const how = been[/book\/\w+(?=\.html$)/.exec(link.pathname)?.[0]];
    if (how) link.dataset.been = how;
  }
}
const end = document.querySelector(".prev-next-footer");
if (end && here) {
  wasHere("opened");
  new IntersectionObserver(([{ isIntersecting }]) => isIntersecting && wasHere("read")).observe(end);
}
// A page to which one goes back may be shown as it was left.
addEventListener("pageshow", ({ persisted }) => persisted && mark(readPages()));

// On a phone the words of a drawing grow to 11 pixels, or at least 10, where they then still stand apart. Where
// one would leave the page, the drawing makes room for it, and its box stays as it is.
const onPhone = matchMedia("(max-width: 576px)");
const LEAST = [12, 11.5, 11, 10.5, 10.5, 10.4]; // pixels of a drawing that is 403 wide
const OVERLAP = [0, 0, 0, 0, 1, 1]; // pixels by which words may then lie on each other

function standApart(words, overlap) {
  const boxes = words.map((word) => word.getBoundingClientRect()).filter((box) => box.width);
  const across = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const down = (a, b) => Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  return boxes.every((a, i) => boxes.slice(0, i).every((b) => across(a, b) <= overlap || down(a, b) <= 3));
}
function makeRoom(drawing, words) {
  const boxes = words.map((word) => word.getBoundingClientRect());
  const left = Math.min(0, ...boxes.map((box) => box.left));
  const right = Math.max(innerWidth, ...boxes.map((box) => box.right));
  const [x, y, width, height] = drawing.dataset.box.split(" ").map(Number);
  const unit = width / drawing.getBoundingClientRect().width;
  const more = (right - left) / innerWidth;
  drawing.setAttribute("viewBox", `${x + left * unit} ${y} ${width * more} ${height * more}`);
}
function reset(drawing) {
  drawing.style.removeProperty("--least");
  if (drawing.dataset.box) drawing.setAttribute("viewBox", drawing.dataset.box);
}
function growWords(drawing) {
  const words = [...drawing.querySelectorAll("text")];
  drawing.dataset.box ??= drawing.getAttribute("viewBox");
  for (const [k, least] of LEAST.entries()) {
    reset(drawing);
    drawing.style.setProperty("--least", `${least}px`);
    makeRoom(drawing, words);
    if (standApart(words, OVERLAP[k])) return;
  }
  reset(drawing);
}
function fitDrawings() {
  for (const drawing of document.querySelectorAll("svg.drawing")) {
    if (!onPhone.matches) reset(drawing);
    else if (drawing.getBoundingClientRect().width) growWords(drawing);
  }
}
onPhone.addEventListener("change", fitDrawings);
// On a wide screen there is nothing to measure while a page loads.
document.fonts.ready.then(() => onPhone.matches && fitDrawings());

// The search lists what it finds while one types; its index is loaded when the first letter comes.
const SEARCH = ["_static/searchtools.js", "_static/language_data.js", "searchindex.js", "_static/search.js"];
const field = document.querySelector("#pst-search-dialog input");
let typed = "";
field?.addEventListener("input", () => (typed = field.value));
if (!location.pathname.endsWith("/search.html")) {
  field?.addEventListener("input", () => {
    for (const name of SEARCH) {
      const script = Object.assign(document.createElement("script"), { async: false, src: root.dataset.content_root + name });
      script.addEventListener("load", () => (field.value = typed)); // Sphinx's would empty it
      document.head.append(script);
    }
  }, { once: true });
}

// On a phone the outline is a dialog over the page, which closes when a place is chosen in it.
for (const sheet of document.querySelectorAll("dialog[id$='-sidebar-modal']")) {
  sheet.addEventListener("click", ({ target }) => target.closest("a")?.hash && sheet.close());
}

// A printed page is a light one, and has the solutions at its end.
const solutions = [];
let theme;
addEventListener("beforeprint", () => {
  theme = root.dataset.theme;
  root.dataset.theme = "light";
  const end = document.createElement("section");
  end.innerHTML = "<h2>Solutions</h2>";
  for (const solution of document.querySelectorAll("article .tag_hide-cell")) {
    const place = document.createComment("");
    solution.replaceWith(place);
    end.append(solution);
    solutions.push({ solution, place, folds: [...solution.querySelectorAll("details:not([open])")] });
  }
  for (const { folds } of solutions) for (const fold of folds) fold.open = true;
  if (solutions.length) document.querySelector("article")?.append(end);
});
addEventListener("afterprint", () => {
  root.dataset.theme = theme;
  for (const { solution, place, folds } of solutions.splice(0)) {
    for (const fold of folds) fold.open = false;
    const end = solution.closest("section");
    place.replaceWith(solution);
    if (!end.querySelector(".cell")) end.remove();
  }
});

// Pointing at a quantity lights up all of its kind; a card says what the notation says of it.
const kind = (element) => [...element.classList].find((name) => name.startsWith("q-"));
const card = document.createElement("div");
card.className = "symbol-card";
card.hidden = true;
card.setAttribute("role", "status");
document.body.append(card);
let legend; // the rows of the page of notation, by quantity, fetched when first asked for

async function explain(name) {
  const page = document.querySelector(".reading")?.dataset.notation;
  legend ??= fetch(page ?? "notation.html")
    .then((answer) => answer.text())
    .then((text) => {
      const rows = new DOMParser().parseFromString(text, "text/html").querySelectorAll("table tr");
      const found = {};
      for (const row of rows) {
        const symbol = row.cells[0]?.querySelector("[class*='q-']");
        if (symbol) found[kind(symbol)] ??= row;
      }
      return found;
    })
    .catch(() => ({}));
  return (await legend)[name];
}

// In *Line by line*, what the seven makes of a quantity, from the table that its page prints.
const values = {};
for (const line of document.querySelector(".tag_values .cell_output pre")?.textContent.split("\n") ?? []) {
  values[line.split(" ")[0]] = line;
}

/** Light up all of its kind. */
function light(element) {
  for (const other of document.querySelectorAll(`.${kind(element)}`)) other.classList.add("lit");
}

/** Show the card of a quantity. */
async function tell(element) {
  const row = await explain(kind(element));
  if (!row || !element.classList.contains("lit")) return;
  card.replaceChildren(
    ...[...row.cells].map((cell) => {
      const line = document.createElement("p");
      line.append(...[...cell.cloneNode(true).childNodes]);
      return line;
    }),
  );
  const value = values[element.textContent];
  if (value) card.append(Object.assign(document.createElement("samp"), { textContent: value }));
  card.hidden = false;
  // Above what it explains, if that is not at the very top; the style puts it at a phone's foot.
  const place = element.getBoundingClientRect();
  const left = Math.min(place.left, innerWidth - card.offsetWidth - 12);
  const above = place.top - card.offsetHeight - 8;
  card.style.left = `${Math.max(8, left) + scrollX}px`;
  card.style.top = `${(above < 60 ? place.bottom + 8 : above) + scrollY}px`;
}

let waiting;

function dim() {
  clearTimeout(waiting);
  card.hidden = true;
  for (const element of document.querySelectorAll(".lit")) element.classList.remove("lit");
}

const SYMBOL = "article [class*='q-']:not(.play *)";
const REACH = 14; // pixels by which a finger may miss a symbol of an equation

/** The symbol that a pointer is on, or that a finger meant. */
function symbolAt({ target, clientX, clientY, pointerType }) {
  const missed = ({ left, right, top, bottom }) =>
    Math.max(left - clientX, clientX - right, top - clientY, clientY - bottom);
  const near = pointerType === "touch" ? [...(target.closest?.("article math")?.querySelectorAll(SYMBOL) ?? [])] : [];
  const far = new Map(near.map((each) => [each, missed(each.getBoundingClientRect())]));
  return target.closest?.(SYMBOL) ?? near.filter((each) => far.get(each) < REACH).sort((a, b) => far.get(a) - far.get(b))[0];
}

for (const name of ["pointerover", "click"]) {
  document.addEventListener(name, (event) => {
    const symbol = symbolAt(event);
    const pointed = name === "pointerover";
    if (pointed && symbol?.classList.contains("lit")) return;
    dim();
    if (!symbol || !kind(symbol)) return;
    light(symbol);
    waiting = setTimeout(tell, pointed ? 250 : 0, symbol); // not at every passing of the pointer
  });
}
document.addEventListener("keydown", ({ key }) => key === "Escape" && dim());

// A picture enlarges when it is tapped.
document.addEventListener("click", ({ target }) => {
  const picture = target.closest?.("article .cell_output img, article figure img, svg.drawing");
  if (!picture || picture.closest("a, dialog")) return;
  const dialog = document.createElement("dialog");
  dialog.className = "enlarged";
  dialog.setAttribute("aria-label", picture.alt || picture.getAttribute("aria-label") || "");
  dialog.append(picture.cloneNode(true));
  dialog.addEventListener("click", () => dialog.close());
  dialog.addEventListener("keydown", ({ key }) => key === "Escape" && dialog.close()); // the theme keeps the key
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
});

// The outline lights up where you are. The theme's own light goes from heading to heading, and is wrong
// where these stand screens apart, or after a jump: it finds no outline of this name, and leaves it to us.
const LINE = 140; // pixels, just below the head of the page
const outline = document.getElementById("pst-page-toc-nav");
if (outline) {
  outline.id = "outline";
  const links = [...outline.querySelectorAll("a")];
  const places = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
  const where = () => {
    const here = places.findLastIndex((place) => place && place.getBoundingClientRect().top <= LINE);
    for (const [at, link] of links.entries()) {
      link.ariaCurrent = at === here ? "true" : null;
      link.parentElement.classList.toggle("active", link.parentElement.contains(links[here] ?? null));
    }
  };
  addEventListener("scroll", () => requestAnimationFrame(where), { passive: true });
  where();
}

// *Line by line*: under the outline, or at the foot of a phone, stands the equation of the line that you are
// at, unless its own note has it in sight.
const rows = [...document.querySelectorAll(".annotated-row")];
if (rows.length) {
  const shown = document.createElement("aside");
  shown.className = "rail-equation";
  shown.setAttribute("aria-label", "The equation of this line");
  const rail = document.querySelector(".bd-sidebar-secondary");
  const wide = innerWidth >= 1200 && rail;
  (wide ? rail : document.body).append(shown);
  const nextMath = (anchor) => {
    let at = anchor;
    while (at && !at.matches?.("div.math") && !at.querySelector?.("div.math")) {
      at = at.nextElementSibling ?? at.parentElement?.nextElementSibling;
    }
    return at?.matches("div.math") ? at : at?.querySelector("div.math");
  };
  const linked = (row) => row.querySelector(".annotated-note a[href^='#equation-']")?.hash.slice(1);
  const of = new Map(); // where its note has no equation, that of its function, if it has one alone
  for (const section of new Set(rows.map((row) => row.closest("section")))) {
    const own = rows.filter((row) => row.closest("section") === section);
    const names = new Set(own.map(linked).filter(Boolean));
    const target = names.size === 1 && document.getElementById([...names][0]);
    for (const row of own) if (target && !row.querySelector(".annotated-note div.math")) of.set(row, nextMath(target));
  }

  const follow = (row) => {
    if (row.classList.contains("at")) return;
    for (const other of rows) other.classList.toggle("at", other === row);
    const equation = of.get(row);
    if (!equation) return shown.replaceChildren();
    const title = document.createElement("p");
    const line = row.querySelector("span[id]").id.replace(/-(\d+)$/, ".py, line $1");
    title.textContent = `${line} · ${row.closest("section").querySelector("h2, h3").firstChild.data}`;
    shown.replaceChildren(title, equation.cloneNode(true));
  };
  // A line to which a link led stays until the reader moves: what the page brings under a pointer at
  // rest is not pointed at.
  let linkedRow = null;
  const jumped = () => {
    linkedRow = location.hash ? document.getElementById(location.hash.slice(1))?.closest(".annotated-row") : null;
    if (linkedRow) follow(linkedRow);
  };
  const free = () => (linkedRow = null);
  for (const name of ["wheel", "touchmove", "keydown"]) addEventListener(name, free, { passive: true });
  let pointer = ""; // where it was
  let passing; // on its way to the rail a pointer passes other lines
  const pointed = ({ type, clientX, clientY, target }) => {
    const now = `${clientX} ${clientY}`;
    if (type === "pointermove" && pointer === now) return;
    pointer = now;
    free();
    clearTimeout(passing);
    const row = target.closest?.(".annotated-row");
    if (row) passing = setTimeout(follow, type === "pointermove" ? 80 : 0, row);
  };
  for (const name of ["pointermove", "pointerdown", "focusin"]) document.addEventListener(name, pointed);
  const middle = () => {
    if (linkedRow) return follow(linkedRow);
    const row = rows.find((each) => each.getBoundingClientRect().bottom > LINE);
    if (row && row.getBoundingClientRect().top < innerHeight) return follow(row);
    for (const other of rows) other.classList.remove("at"); // above the first line, or below the last
    shown.replaceChildren();
  };
  addEventListener("scroll", () => requestAnimationFrame(middle), { passive: true });
  addEventListener("hashchange", jumped);
  jumped();
  middle();
}

// The buttons for copying come later than this script.
addEventListener("load", () => {
  for (const button of document.querySelectorAll(".copybtn")) button.setAttribute("aria-label", "Copy");
});
