// @ts-check
// Brings the page's pictures to life: a cell or figure of class `tag_play-NAME` or `play-NAME` holds a
// static picture; when it comes into sight, NAME.js takes its place, in the same box, and its `caption`, if
// it has one, that of the picture.

import { dataOf, el, keepStates } from "./kit.js";

const CLASS = /^(?:tag_)?play-(\w+)$/;

/** Put a widget into its box, or in the place of the one that is there. @param {Element} box */
async function bring(box) {
  const name = box.getAttribute("data-play") ?? "";
  try {
    const { mount, caption } = await import(`./${name}.js`);
    const picture = box.querySelector(".cell_output svg.drawing, .cell_output img, :scope > img, :scope > a > img");
    const before = box.querySelector("div.play");
    const data = await dataOf(box);
    const stage = document.createElement("div");
    stage.className = `play play-of-${name}`;
    await mount(stage, data); // it may load; the picture stands until it is there
    const still = picture?.closest("a.image-reference") ?? picture;
    if (!still) throw new Error(`expected a picture in the box of ${name}`);
    still.classList.add("poster");
    still.before(stage);
    before?.remove();
    if (caption && !box.querySelector(".played")) box.querySelector(".caption-text")?.after(el("span", { class: "played" }, caption));
    box.classList.add("is-playing");
  } catch (error) {
    console.error(error); // the picture stays
  }
}

/** The box whose widget has its state in the address. */
const asked = () => document.querySelector(`[data-play="${/^#play-(\w+)\?/.exec(location.hash)?.[1]}"]`);
const watcher = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      bring(target);
    }
  },
  { rootMargin: "400px" },
);
for (const box of document.querySelectorAll("[class*='play-']")) {
  const name = [...box.classList].map((each) => CLASS.exec(each)?.[1]).find(Boolean);
  if (!name) continue;
  box.setAttribute("data-play", name);
  watcher.observe(box);
}
asked()?.scrollIntoView();
keepStates();
addEventListener("hashchange", () => {
  const box = asked();
  box?.scrollIntoView();
  if (box?.classList.contains("is-playing")) bring(box);
});
