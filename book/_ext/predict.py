"""The boxes *Predict first*: what answers a question stays closed until the reader has chosen.

A box whose question ends in a list offers its items to choose from; its class ``answer-2`` says
that the second is right. ``predict.js`` does the rest: without scripts, in print and in a notebook
the answer stands below the list.
"""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform

COLLECTED = "book/how"  # the page that lists what a reader predicted


def check_answer(box: nodes.Element, choices: int) -> None:
    """Raise ExtensionError unless a class of the box names one of its choices as right."""
    answers = [f"answer-{number}" for number in range(1, choices + 1)]
    if len({*answers} & {*box["classes"]}) != 1:
        raise ExtensionError(f"expected one of {answers}, got {box['classes']}: {box.astext()}")


def answer_of(box: nodes.Element) -> list[nodes.Node]:
    """What follows a box, to the end of the first paragraph after a cell."""
    children = box.parent.children
    answer, seen_cell = [], False
    for node in children[children.index(box) + 1 :]:
        if isinstance(node, nodes.section | nodes.Admonition):
            break
        answer.append(node)
        seen_cell = seen_cell or (isinstance(node, nodes.container) and "nb_element" in node)
        if seen_cell and isinstance(node, nodes.paragraph):
            break
    return answer


class CloseAnswers(SphinxPostTransform):
    """Mark the answer of each box, once its cells are what the page shows (199)."""

    default_priority = 200
    builders = ("html",)

    def run(self, **_: Any) -> None:
        boxes = [box for box in self.document.findall(nodes.admonition) if is_question(box)]
        for number, box in enumerate(boxes, start=1):
            (choices,) = box.findall(nodes.bullet_list)
            check_answer(box, len(choices))
            box["ids"].append(f"predict-{number}")
            answer = answer_of(box)
            for node in answer:
                box.parent.remove(node)
            box.parent.insert(box.parent.index(box) + 1, closed := nodes.container())
            closed["classes"].append("answer")
            closed.extend(answer)


def is_question(box: nodes.Element) -> bool:
    return "predict" in box["classes"] and any(box.findall(nodes.bullet_list))


def add_script(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    if 'id="predict-' in context.get("body", "") or page == COLLECTED:
        script = context["pathto"]("_static/predict.js", 1)
        lists = context["pathto"](COLLECTED)
        added = f'<script defer src="{script}" data-collected="{lists}"></script>'
        context["metatags"] = context.get("metatags", "") + added


def setup(app: Sphinx) -> None:
    app.add_post_transform(CloseAnswers)
    app.connect("html-page-context", add_script, priority=700)  # after play.js, which names places
