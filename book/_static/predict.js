"use strict";

// The boxes *Predict first*, see book/_ext/predict.py: the answer opens once the reader has chosen. What
// was chosen is kept in this browser, and the page that explains the book lists it.
{
  const KEPT = "predictions"; // by address of the box: the question, what was said, and the answer
  const { collected } = document.currentScript.dataset;
  const page = document.querySelector("meta[name=page]").content;
  const predictions = JSON.parse(localStorage.getItem(KEPT) ?? "{}");

  const choicesOf = (box) => [...box.querySelectorAll("li button")];
  // A widget that shows nothing of the answer until it is moved stays open, but for its caption.
  const close = (box, to) => {
    const all = box.nextElementSibling.querySelectorAll(":scope > :not(.tag_play-parts), figcaption");
    for (const each of all) each.inert = to;
  };
  const rightOf = (box) => choicesOf(box)[Number(/answer-(\d)/.exec(box.className)[1]) - 1];

  function made(tag, properties, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  /** Keep what was said, as HTML; nothing for who only asked for the answer. */
  function keep(box, said) {
    predictions[`${page}.html#${box.id}`] = {
      title: document.querySelector("h1").textContent.replace(/#$/, ""),
      question: box.querySelector("p:not(.admonition-title)").innerHTML,
      answer: rightOf(box).innerHTML,
      said,
    };
    localStorage.setItem(KEPT, JSON.stringify(predictions));
  }

  /** Open the answer of a box, and mark what was said. */
  function open(box, said = "") {
    box.classList.add("committed");
    close(box, false);
    box.querySelector(".show-me")?.remove();
    const answer = rightOf(box);
    for (const choice of choicesOf(box)) {
      choice.classList.toggle("right", choice === answer);
      choice.ariaPressed = String(choice.innerHTML === said);
      choice.ariaDisabled = "true";
    }
    if (!said) return;
    const verdict = said === answer.innerHTML ? "right" : "wrong, and the right answer is marked";
    const link = made("a", { href: `${collected}#what-you-predicted`, textContent: "All your predictions" });
    box.querySelector("[role=status]").append(`Your prediction is ${verdict}. `, link);
  }

  for (const box of document.querySelectorAll(".predict[id]")) {
    const choose = (said) => {
      if (box.classList.contains("committed")) return;
      keep(box, said);
      open(box, said);
    };
    for (const item of box.querySelectorAll("li")) {
      const button = made("button", { type: "button", ariaPressed: "false" }, ...item.querySelector("p").childNodes);
      button.addEventListener("click", () => choose(button.innerHTML));
      item.replaceChildren(button);
    }
    const show = made("button", { type: "button", className: "show-me", textContent: "Show the answer" });
    show.addEventListener("click", () => choose(""));
    box.append(made("p", { role: "status" }), show);

    const kept = predictions[`${page}.html#${box.id}`];
    const known = kept && (!kept.said || choicesOf(box).some((choice) => choice.innerHTML === kept.said));
    const arrive = () => { // a link leads into what is closed
      if (box.classList.contains("committed")) return;
      const [id, state] = decodeURIComponent(location.hash.slice(1)).split("?");
      if (!box.nextElementSibling.contains(document.getElementById(id))) return;
      if (id.startsWith("play-") && state === undefined) box.scrollIntoView(); // to play, and not for the answer
      else open(box);
    };
    close(box, true);
    if (known) open(box, kept.said);
    for (const event of ["load", "hashchange"]) addEventListener(event, arrive);
    arrive();
  }

  /** List what was said, what was wrong first. */
  function list(place) {
    const said = Object.entries(predictions).filter(([, each]) => each.said);
    const isRight = ([, { said, answer }]) => said === answer;
    const right = said.filter(isRight).length;
    place.append(made("p", { textContent: said.length ? `${right} of your ${said.length} predictions are right.` : "You have not predicted anything yet." }));
    if (!said.length) return;
    const rows = [...said.filter((each) => !isRight(each)), ...said.filter(isRight)].map((each) => {
      const [address, { title, question, said, answer }] = each;
      const row = made("li", { className: isRight(each) ? "right" : "" });
      row.innerHTML = `<a>${title}</a>: ${question}<br>You predicted: ${said}${isRight(each) ? "" : `<br>The answer: ${answer}`}`;
      row.firstChild.href = document.documentElement.dataset.content_root + address;
      return row;
    });
    const forget = made("button", { type: "button", textContent: "Forget them" });
    forget.addEventListener("click", () => {
      localStorage.removeItem(KEPT);
      location.reload();
    });
    place.append(made("ul", { className: "predicted" }, ...rows), forget);
  }

  const place = document.getElementById("what-you-predicted");
  if (place) list(place);
}
