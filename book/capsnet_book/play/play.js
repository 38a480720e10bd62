// @ts-check
// Brings the page's pictures to life: a cell or figure of class `tag_play-NAME` or `play-NAME` holds a
// static picture; when it comes into sight, NAME.js takes its place, in the same box.

import { dataOf } from "./kit.js";

const CLASS = /^(?:tag_)?play-(\w+)$/;

/** @param {Element} box @param {string} name */
async function bring(box, name) {
  const { mount } = await import(`./${name}.js`);
  const picture = box.querySelector(".cell_output svg.drawing, .cell_output img, :scope > img, :scope > a > img");
  const data = await dataOf(box);
  const stage = document.createElement("div");
  stage.className = `play play-of-${name}`;
  await mount(stage, data); // it may load; the picture stands until it is there
  const still = picture?.closest("a.image-reference") ?? picture;
  if (!still) throw new Error(`expected a picture in the box of ${name}`);
  still.classList.add("poster");
  still.before(stage);
  box.classList.add("is-playing");
}

const asked = location.hash.slice(1).split("?")[0];
const watcher = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      const name = target.getAttribute("data-play") ?? "";
      bring(target, name).catch((error) => console.error(error)); // the picture stays
    }
  },
  { rootMargin: "400px" },
);
for (const box of document.querySelectorAll("[class*='play-']")) {
  const name = [...box.classList].map((each) => CLASS.exec(each)?.[1]).find(Boolean);
  if (!name) continue;
  box.setAttribute("data-play", name);
  if (!box.id) box.id = `play-${name}`;
  watcher.observe(box);
  if (asked === `play-${name}`) box.scrollIntoView();
}
