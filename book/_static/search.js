// The page of search results: each page found leads to its sections that have the words. Loaded
// there alone, before Sphinx's own script begins to search (book/_ext/dress.py).

const MOST = 3; // sections of a page

/** What a section says itself, without its heading, the sections within it and folded code. */
function said(section) {
  const own = section.cloneNode(true);
  for (const part of own.querySelectorAll(":scope section, :is(h1, h2, h3, h4), details.fold, annotation")) {
    part.remove();
  }
  return own.textContent.replace(/\s+/g, " ");
}

Search.makeSearchSummary = (html, keywords) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  const name = page.querySelector("meta[name=page]").content;
  const words = [...keywords].map((word) => word.toLowerCase());
  const found = [...page.querySelectorAll("article section[id]")]
    .map((section) => {
      const title = section.querySelector("h1, h2, h3, h4").textContent.replace(/#$/, "");
      return { section, title, text: said(section) };
    })
    .map((each) => ({ ...each, hits: words.filter((word) => `${each.title} ${each.text}`.toLowerCase().includes(word)) }))
    .filter(({ hits }) => hits.length)
    .sort((one, other) => other.hits.length - one.hits.length)
    .slice(0, MOST);
  const list = document.createElement("ul");
  list.className = "context";
  for (const { section, title, text, hits } of found) {
    const place = text.toLowerCase().indexOf(hits[0]);
    const link = document.createElement("a");
    link.href = `${name}.html#${section.id}`;
    link.textContent = title;
    const item = document.createElement("li");
    item.append(link, ` … ${text.slice(Math.max(0, place - 80), place + 120).trim()} …`);
    list.append(item);
  }
  return list;
};
