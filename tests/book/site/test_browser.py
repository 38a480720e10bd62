"""What a reader's browser makes of every page: requests, errors, width, contrast, search."""

import gzip
import itertools
import re
import statistics
from collections.abc import Iterator
from typing import Any

import pytest

from address import ROOT
from helpers import built
from helpers.built import Site
from helpers.pages import PATIENCE, check_with_axe, served

PAGES = [
    *(p.relative_to(ROOT).with_suffix(".html").as_posix() for p in sorted(ROOT.glob("book/*.md"))),
    "search.html",
    "genindex.html",
]
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
# Of things that look alike one is left, for axe would look at every one, and takes most of the time
# of these tests: paragraphs with the same kinds of elements in them, rows of tables, entries of the
# reference, folded code, parts of drawings and of equations, tokens of code with their links. It is
# given what was seen on other pages, and returns that with what is new on this one.
THIN = """(known) => {
    const seen = new Set(known);
    const kind = (it) => it.tagName + ["class", "style", "fill"].map((at) => it.getAttribute(at));
    const many = "main :is(p, li, tr, dl, details, math, math *, svg *, pre span, .sig *)"
        + ":not(.play *)";
    // From the end: what is inside goes first, so that what is around it looks like others, too.
    for (const each of [...document.querySelectorAll(many)].reverse()) {
        if (!each.isConnected) continue;
        const kinds = new Set([...each.querySelectorAll("*")].map(kind));
        for (let it = each; it.tagName !== "MAIN"; it = it.parentElement) kinds.add(kind(it));
        const key = [...kinds].sort().join();
        if (seen.has(key)) (each.closest("a") ?? each).remove();
        seen.add(key);
    }
    return [...seen];
}"""
# The icons that are not drawn: no sign, or no type that has it.
ICONS = """() => [...document.querySelectorAll("i[class*=fa-], span[class*=fa-]")]
    .filter((icon) => icon.checkVisibility())
    .filter((icon) => {
        const { content, fontFamily, fontWeight } = getComputedStyle(icon, "::before");
        const sign = content.replaceAll('"', "");
        return sign === "none" || !document.fonts.check(`${fontWeight} 16px ${fontFamily}`, sign);
    })
    .map((icon) => icon.outerHTML)"""
# The theme lets the keyboard reach what scrolls sideways, a moment after the window's size changed.
REACHABLE = """() => [...document.querySelectorAll("pre")].every((it) =>
    it.scrollWidth <= it.clientWidth || it.tabIndex === 0)"""
# How much of the page has jumped while it loaded: the cumulative layout shift.
SHIFTS = """
window.shifted = 0;
new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.shifted += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""

# Widgets that are larger than the box that their picture keeps for them.
OVERFULL = """() => [...document.querySelectorAll("div.play")].filter((stage) =>
    stage.scrollHeight > stage.clientHeight + 1 || stage.scrollWidth > stage.clientWidth + 1)
    .map((stage) => `${stage.className}: ${stage.scrollWidth} x ${stage.scrollHeight}`)"""
# Words of drawings that are too small, or leave the page, once a phone's have grown, a frame later.
SMALL = """async (width) => {
    for (let k = 0; k < 2; k++) await new Promise(requestAnimationFrame);
    return [...document.querySelectorAll("svg.drawing text")].filter((it) => it.checkVisibility())
        .filter((it) => {
            const { a, b } = it.getScreenCTM();  // some stand upright
            const { left, right } = it.getBoundingClientRect();
            const size = parseFloat(getComputedStyle(it).fontSize) * Math.hypot(a, b);
            return size < 9.3 || left < -1 || right > width + 1;
        })
        .map((it) => it.textContent);
}"""


@pytest.fixture(scope="module")
def site() -> Site:
    return built.site()


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    """Where the site is served on this machine, as it would be under a repository's name."""
    with served(site.folder) as place:
        yield place


@pytest.fixture(scope="module")
def tab(browser: Any) -> Any:
    """One tab for all; it notes what a page asks for, complains of and looks like."""
    tab = browser.new_context(viewport=DESK).new_page()
    tab.set_default_timeout(PATIENCE)
    tab.asked, tab.complaints, tab.seen = [], [], []
    tab.on("request", lambda request: tab.asked.append(request.url))
    tab.on("console", lambda message: tab.complaints.append(f"{message.type}: {message.text}"))
    tab.on("pageerror", lambda error: tab.complaints.append(f"error: {error}"))
    tab.add_init_script(SHIFTS)
    session = tab.context.new_cdp_session(tab)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})  # a reader's first visit
    return tab


@pytest.fixture
def visit(tab: Any, address: str) -> Any:
    """Open a page as a new reader would."""

    def open_page(page: str) -> Any:
        tab.goto("about:blank")
        tab.emulate_media(color_scheme="light", media="screen")
        tab.set_viewport_size(DESK)
        tab.mouse.move(0, 0)
        for notes in (tab.asked, tab.complaints):
            notes.clear()
        tab.goto(f"{address}/{page}", wait_until="networkidle")
        return tab

    yield open_page
    tab.evaluate("localStorage.clear()")


def see_all_widgets(tab: Any) -> None:
    """Scroll past each widget, which is when it takes the place of its picture."""
    boxes = tab.locator("[data-play]")
    for box in boxes.all():
        box.scroll_into_view_if_needed()
    tab.wait_for_function(f"document.querySelectorAll('.is-playing').length == {boxes.count()}")


@pytest.mark.parametrize("page", PAGES)
def test_a_page(page: str, visit: Any, address: str, subtests: pytest.Subtests) -> None:
    tab = visit(page)
    with subtests.test("its widgets take the place of their pictures"):
        see_all_widgets(tab)
        assert tab.evaluate(OVERFULL) == []
    tab.evaluate("document.querySelectorAll('.show-me').forEach((it) => it.click())")
    with subtests.test("asks no other host and has no errors"):
        assert [u for u in tab.asked if not u.startswith((address, "data:", "blob:"))] == []
        assert [said for said in tab.complaints if said.startswith(("error", "warning"))] == []
        assert tab.locator(".temml-error, script[src*=mathjax i]").count() == 0
        assert tab.evaluate(ICONS) == []
    with subtests.test("does not jump while it loads"):
        assert tab.evaluate("shifted") < 0.02
    with subtests.test("fits a phone"):
        check_width(tab)
    tab.seen = tab.evaluate(THIN, tab.seen)
    parts = "main, .bd-sidebar-primary" if page == PAGES[0] else "main"  # one sidebar for all
    with subtests.test("is legible and accessible"):
        check_with_axe(tab, parts)
    with subtests.test("is legible in the dark"):
        tab.emulate_media(color_scheme="dark")
        # The page hears of it a moment later.
        tab.wait_for_function("document.documentElement.dataset.theme == 'dark'")
        tab.evaluate("document.getAnimations().forEach(change => change.finish())")
        check_with_axe(tab, parts, runOnly=["color-contrast"])


def check_width(tab: Any) -> None:
    tab.set_viewport_size(PHONE)
    width = tab.evaluate("document.documentElement.scrollWidth")
    wide = tab.evaluate(
        """width => [...document.querySelectorAll("main *")]
            .filter(e => e.getBoundingClientRect().right > width + 1).slice(0, 5)
            .map(e => e.outerHTML.slice(0, 120))""",
        PHONE["width"],
    )
    buttons = tab.locator(".bd-header-article button, .bd-header-article a.btn")
    heights = buttons.evaluate_all("all => all.map(e => e.scrollHeight)")
    overfull, small = tab.evaluate(OVERFULL), tab.evaluate(SMALL, PHONE["width"])
    tab.set_viewport_size(DESK)
    assert overfull == [] and small == []
    tab.wait_for_function("!document.querySelector('svg.drawing[style*=least]')")
    assert width <= PHONE["width"], f"{width} px wide: {wide}"
    assert heights and max(heights) < 50, f"the buttons above the page are {heights} px high"


def test_search_finds_words_of_the_chapters(visit: Any, address: str) -> None:
    tab = visit("book/index.html")
    tab.locator(".search-button__button:visible").first.click()
    field = tab.locator("input[type=search]:visible").first
    field.fill("squash")
    tab.locator(".suggestions .everything a").click()
    tab.wait_for_url(re.compile("search.html"))
    results = tab.locator("#search-results ul.search li a")
    finished = "document.querySelector('.search-summary')?.innerText.includes('finished')"
    tab.wait_for_function(finished)
    tab.wait_for_function("document.querySelectorAll('#search-results .context').length > 0")
    sections = tab.locator("#search-results .context a").evaluate_all("all => all.map(a => a.href)")
    assert sections and all("#" in link for link in sections)
    links = results.evaluate_all("links => links.map(link => link.href)")
    titles = tab.locator("#search-results ul.search > li > a").evaluate_all(
        "links => links.map(link => link.href)"
    )
    assert "book/squash.html" in titles[0] and len({*titles}) == len(titles)
    assert len({link.partition("#")[0] for link in links}) > 1
    assert "stroke-linejoin" not in tab.locator("#search-results").inner_text()
    # The sign of the search stands before the words, not on them.
    sign, words = tab.locator("main .bd-search i"), tab.locator("main input[type=search]")
    inset = words.evaluate("it => parseFloat(getComputedStyle(it).paddingLeft)")
    assert (
        sign.bounding_box()["x"] + sign.bounding_box()["width"] < words.bounding_box()["x"] + inset
    )
    assert all(url.startswith((address, "data:")) for url in tab.asked)
    # Titles of drawings have the word, too.
    tab.evaluate("localStorage.sphinx_highlight_terms = 'routing'")
    tab = visit("book/routing.html")
    tab.locator("article .highlighted").first.wait_for(state="attached")
    assert [said for said in tab.complaints if "getBBox" in said] == []


def test_search_lists_what_it_finds_while_a_reader_types(visit: Any) -> None:
    tab = visit("book/squash.html")
    assert not any("searchindex" in url for url in tab.asked)  # it is loaded on demand
    tab.locator(".search-button__button:visible").first.click()
    field = tab.locator("#pst-search-dialog input")
    found = tab.locator(".suggestions a")
    for asks, place in {
        "eq. 3": "annotated.html#equation-3",
        "what is a vote": "#term-vote",
    }.items():
        field.fill("")
        field.press_sequentially(asks)
        tab.locator(f".suggestions li:first-child a[href$='{place}']").wait_for()
    field.fill("")
    field.press_sequentially("routing b")
    tab.locator(".suggestions li:first-child a[href*='routing.html']").wait_for()
    field.press("Backspace")
    assert field.input_value() == "routing "
    titles = found.all_inner_texts()
    assert re.fullmatch(r"\d+\. Routing .*", titles[0]) and "Glossary" not in titles[0]
    check_with_axe(tab, "#pst-search-dialog")
    assert not any(title.startswith("capsnet") for title in titles[:5])
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown"):
        tab.keyboard.press(key)  # up from the first is the field
    assert found.nth(1).evaluate("it => it === document.activeElement")
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("ArrowUp")
    field.press("Enter")  # the first
    tab.wait_for_url(re.compile("book/routing.html"))


def test_a_page_ends_with_the_next_as_a_card_and_cards_say_what_was_read(visit: Any) -> None:
    tab = visit("book/index.html")
    card = tab.locator("ul.cards a[href='squash.html']")
    assert card.get_attribute("data-been") is None
    tab.get_by_role("link", name="interactive").nth(1).click()
    tab.wait_for_url(re.compile("squash.html#play-squash"))
    tab.go_back()
    card.click()
    following = tab.locator("a.right-next")
    expected = tab.locator(".bd-links a[href='routing.html']").inner_text()
    assert expected in following.inner_text() and " min" in following.inner_text()
    tab.wait_for_function("document.querySelector('li.active > a').dataset.been == 'opened'")
    tab.go_back()
    tab.locator("ul.cards a[href='squash.html'][data-been=opened]").wait_for()
    tab.go_forward()
    following.scroll_into_view_if_needed()
    tab.wait_for_function("document.querySelector('li.active > a').dataset.been == 'read'")
    assert following.locator("img:visible").evaluate("it => it.decode().then(() => it.width)") > 0
    tab.go_back()
    tab.locator("ul.cards a[href='squash.html'][data-been=read]").wait_for()


def test_the_front_page_is_light(visit: Any, site: Site, address: str) -> None:
    """Compressed, as a host sends it; fonts and pictures are compressed already."""
    tab = visit("book/index.html")
    files = {site.folder / url.removeprefix(f"{address}/").partition("?")[0] for url in tab.asked}
    weight = {path.name: len(gzip.compress(path.read_bytes())) for path in files}
    assert sum(weight.values()) < 250e3, sorted(weight.items(), key=lambda item: -item[1])[:8]


def test_the_reader_chooses_how_much_code_is_shown(visit: Any) -> None:
    tab = visit("book/converging.html")
    own = tab.locator("details.own pre").first
    setup = tab.locator("details.fold.of-setup pre").first
    glued = tab.locator(".plumbing-line").first

    def shown() -> tuple[bool, bool, bool]:
        return own.is_visible(), setup.is_visible(), glued.is_visible()

    assert shown() == (False, False, False)
    tab.get_by_label("Read with code").check(force=True)
    assert shown() == (True, False, False)
    tab.emulate_media(media="print")
    assert own.is_visible()  # what is read is printed
    tab.emulate_media(media="screen")
    tab.get_by_label("Everything").check(force=True)
    assert shown() == (True, True, True)
    tab.get_by_label("Read", exact=True).check(force=True)
    assert shown() == (False, False, False)
    tab.locator("details.own summary").first.click()
    assert own.is_visible()
    tab.reload()  # it is remembered
    assert shown() == (False, False, False)
    tab.emulate_media(media="print")
    assert not tab.locator(".reading").is_visible() and not own.is_visible()


def test_an_answer_opens_once_the_reader_has_predicted(visit: Any, browser: Any) -> None:
    tab = visit("book/squash.html")
    box, answer = tab.locator(".predict").first, tab.locator(".predict + .answer > *").first
    closed = "it => [it.inert, getComputedStyle(it).filter != 'none']"
    assert answer.evaluate(closed) == [True, True]
    tab.emulate_media(media="print")
    assert answer.evaluate(closed) == [True, False]
    tab.emulate_media(media="screen")
    choices = box.locator("li button")
    right = box.evaluate("it => Number(/answer-(.)/.exec(it.className)[1]) - 1")
    choices.nth((right + 1) % 2).click()
    assert answer.evaluate(closed) == [False, False]
    assert "wrong" in box.get_by_role("status").inner_text()
    choices.nth(right).click(force=True)  # too late
    assert choices.nth(right).get_attribute("aria-pressed") == "false"
    tab.locator(".predict .show-me").last.click()
    tab.reload()  # both are remembered
    answers = tab.locator(".answer > :first-child")
    assert answers.evaluate_all(f"all => all.map({closed})") == [[False, False]] * 2
    box.get_by_role("link", name="All your predictions").click()
    listed = tab.locator("ul.predicted li")
    listed.first.wait_for()  # the click returns before the page is another
    assert listed.count() == 1 and "The answer:" in listed.inner_text()
    check_with_axe(tab, "#what-you-predicted")
    listed.get_by_role("link").click()
    tab.wait_for_url(re.compile("squash.html#predict-1"))
    tab.go_back()
    tab.get_by_role("button", name="Forget them").click()
    tab.get_by_text("You have not predicted anything yet.").wait_for()
    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(f"{tab.url.rpartition('/')[0]}/squash.html")
    assert plain.locator(".answer *").first.evaluate("it => getComputedStyle(it).filter") == "none"


def test_a_link_into_an_answer_opens_it(visit: Any) -> None:
    tab = visit("book/attacks.html#play-attacks?step=3")
    cell = tab.locator(".answer > [data-play=attacks]")
    assert cell.evaluate("it => it.inert") is False
    tab = visit("book/attacks.html")
    assert cell.evaluate("it => it.inert") is True
    tab.get_by_role("link", name="Interactive figure").click()
    tab.locator("div.play-of-attacks").wait_for()
    assert cell.evaluate("it => it.inert") is True  # the question comes first
    question = tab.locator(".predict:has(+ .answer [data-play=attacks])").bounding_box()
    assert 0 <= question["y"] < 200


def test_the_top_of_a_chapter_leads_to_its_widget(visit: Any) -> None:
    tab = visit("book/training.html")
    tab.get_by_role("link", name="Interactive figure").click()
    tab.locator("div.play-of-learn").wait_for()
    place = tab.locator("[data-play=learn]").bounding_box()
    assert 0 <= place["y"] < 200


def test_a_widget_that_does_not_give_an_answer_away_is_open(visit: Any) -> None:
    tab = visit("book/parts.html")
    see_all_widgets(tab)
    cell = tab.locator(".answer > [data-play=parts]")
    hidden = "it => [it.closest('[inert]') != null, getComputedStyle(it).filter != 'none']"
    assert cell.evaluate(hidden) == [False, False]
    assert cell.locator("figcaption").evaluate(hidden) == [True, True]


def test_code_that_the_text_asks_about_is_shown_to_who_only_reads(visit: Any) -> None:
    tab = visit("book/wild.html")
    tab.get_by_label("Read", exact=True).check(force=True)
    asked_about = tab.locator(".tag_shown details.own")
    assert asked_about.locator("pre").first.is_visible()
    assert not asked_about.locator("summary").first.is_visible()
    another = tab.locator(".cell:not(.tag_shown) details.own pre").first
    assert not another.is_visible()
    wrapped = tab.locator(".tag_wrap .cell_output pre").first
    assert wrapped.evaluate("pre => pre.scrollWidth <= pre.clientWidth")


def test_a_print_has_pictures_for_widgets_and_the_solutions_at_the_end(visit: Any) -> None:
    tab = visit("book/routing.html")
    solution = tab.locator("details.hide").first
    assert not solution.locator("pre").first.is_visible()
    solution.locator("summary").click()
    assert solution.locator("pre").first.is_visible()
    assert solution.locator("summary").inner_text().strip() == "Hide the solution"
    box = tab.locator("[data-play=routing]")
    box.scroll_into_view_if_needed()
    box.locator("div.play").wait_for()
    where = "[...document.querySelectorAll('article .tag_hide-cell')].map(e => e.offsetTop)"
    before = tab.evaluate(where)
    tab.emulate_media(color_scheme="dark")
    tab.wait_for_function("document.documentElement.dataset.theme == 'dark'")
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert not box.locator("div.play").is_visible() and box.locator(".poster").is_visible()
    assert tab.locator("html").get_attribute("data-theme") == "light"  # on white paper
    last = tab.locator("article > section").last
    assert last.locator("h2").inner_text() == "Solutions"
    code = last.locator("pre").first
    assert code.is_visible()
    # What fades in prints as nothing.
    parents = "it => [...Array(5)].map(() => (it = it.parentElement).getAnimations().length)"
    assert code.evaluate(parents) == [0, 0, 0, 0, 0]
    tab.emulate_media(media="screen")
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate(where) == before and len(before) > 0
    assert tab.locator("h2", has_text="Solutions").count() == 0
    assert tab.locator("html").get_attribute("data-theme") == "dark"


def test_symbols_of_a_kind_light_up_together_and_say_what_they_are(
    visit: Any, subtests: pytest.Subtests
) -> None:
    tab = visit("book/routing.html")
    see_all_widgets(tab)  # some show symbols, too
    tab.locator("article math .q-uhat").first.hover()
    card = tab.locator(".symbol-card")
    card.wait_for(state="visible")
    assert "vote of child" in card.inner_text()
    symbol = tab.locator("article math .q-uhat").first.bounding_box()
    shown = card.bounding_box()
    assert shown["y"] + shown["height"] <= symbol["y"]  # the next line can be read
    lit = tab.locator(".lit")
    assert lit.count() == tab.locator("article .q-uhat").count() > 10
    assert tab.locator("pre .lit").count() > 0  # in the code as well
    tab.keyboard.press("Escape")
    assert not card.is_visible() and lit.count() == 0
    with subtests.test("a state in the address reaches a page that is open"):
        tab.evaluate("location.hash = 'play-routing?t=3&over=children'")
        tab.locator("div.play-of-routing .says", has_text="Iteration 1.").first.wait_for()
        assert tab.locator("div.play-of-routing").count() == 1
    with subtests.test("a drawing follows the theme and enlarges"):
        drawing = tab.locator("#fig-routing-shares svg.drawing")
        ink = "element => getComputedStyle(element).color"
        before = drawing.evaluate(ink)
        tab.emulate_media(color_scheme="dark")
        tab.wait_for_function("document.documentElement.dataset.theme == 'dark'")
        assert drawing.evaluate(ink) != before
        drawing.click()
        assert tab.locator("dialog.enlarged svg").is_visible()
        tab.keyboard.press("Escape")
        tab.wait_for_function("!document.querySelector('dialog.enlarged')")


def test_on_a_phone_the_outline_closes_where_it_leads_and_links_have_names(visit: Any) -> None:
    tab = visit("book/routing.html")
    tab.set_viewport_size(PHONE)
    tab.locator(".secondary-toggle:visible").click()
    sheet = tab.locator("#pst-secondary-sidebar-modal")
    sheet.get_by_role("link").nth(2).click()
    assert "#" in tab.url and not sheet.is_visible()
    tab.wait_for_function(REACHABLE)
    tab.evaluate(THIN, [])
    check_with_axe(tab, "html", least="minor")


def test_on_a_phone_a_cell_names_its_column(visit: Any) -> None:
    tab = visit("book/wild.html")
    said = "none of the ten, but others propose it"
    cell = tab.locator("td", has_text=said).first
    assert cell.inner_text() == said
    tab.set_viewport_size(PHONE)
    assert cell.inner_text() == f"who has it: {said}"


@pytest.mark.parametrize(
    ("page", "widget", "slider"),
    [("index", "front", "slant"), ("inside", "knobs", "2"), ("bent", "bend", "shear"),
     ("pairs", "pairs", "down")],
)  # fmt: skip
def test_the_networks_of_the_pages_come_when_they_are_asked_for(
    page: str, widget: str, slider: str, visit: Any
) -> None:
    tab = visit(f"book/{page}.html")
    box = tab.locator(f"[data-play={widget}]")
    box.scroll_into_view_if_needed()
    box.locator("div.play").wait_for()
    with tab.expect_response(lambda answer: answer.url.endswith(".safetensors")) as weights:
        box.get_by_role("slider", name=slider, exact=True).first.press("ArrowRight")
    assert weights.value.ok, weights.value.url
    tab.wait_for_load_state("networkidle")
    assert [said for said in tab.complaints if said.startswith("error")] == []


def test_a_line_has_its_equation_in_the_rail_and_lights_up_its_quantities(visit: Any) -> None:
    tab = visit("book/annotated.html")
    source = (ROOT / "capsnet/functional.py").read_text().splitlines()
    (line,) = (n for n, text in enumerate(source, start=1) if "s = torch.einsum" in text)
    row = tab.locator(f".annotated-row:has(#functional-{line})")
    row.evaluate("row => row.scrollIntoView()")
    row.locator(".annotated-note math .q-c").hover()
    for place in (".annotated-note math", "pre"):
        assert row.locator(f"{place} .q-c.lit").count() == 1
    rail = tab.locator(".rail-equation")
    assert rail.inner_text() == ""  # the note has an equation of its own
    tab.locator(".annotated-row", has_text="def margin_loss").first.hover()
    rail.filter(has_text="functional.py, line").locator("math").wait_for()
    tab.locator(".annotated-row .q-uhat").first.hover()
    tab.locator(".symbol-card samp").wait_for()
    assert "[1, 1152, 10, 16]" in tab.locator(".symbol-card").inner_text()
    # Every note is whole, and seldom higher than its lines.
    room = """all => all.map((row) => [...row.querySelectorAll("pre > span[id]")]
        .reduce((left, line) => left - line.getBoundingClientRect().height,
                row.getBoundingClientRect().height))"""
    code = tab.locator(".annotated-row:not(:has(details, .annotated-note div.math))")
    assert statistics.mean(code.evaluate_all(room)) < 12
    cut = "all => all.filter((note) => note.scrollHeight > note.clientHeight + 1).length"
    assert tab.locator(".annotated-note").evaluate_all(cut) == 0
    # The imports are folded, and the first screen shows Procedure 1 to its end.
    tab.evaluate("scrollTo(0, 0)")
    for size in (PHONE, DESK):
        tab.set_viewport_size(size)
        listing = tab.locator("article pre:visible").first
        assert listing.inner_text().endswith("return v\n")
        box = listing.bounding_box()
        assert box["y"] + box["height"] < size["height"]
    assert tab.locator(".annotated-lines > details:not([open])").count() > 0
    tab.set_viewport_size({"width": 1000, "height": 900})
    ground = "it => getComputedStyle(it.firstElementChild).backgroundColor"
    assert tab.locator(".annotated-row").first.evaluate(ground) != "rgba(0, 0, 0, 0)"


def test_on_a_phone_no_check_covers_another(visit: Any) -> None:
    tab = visit("book/routing.html")
    tab.set_viewport_size(PHONE)
    boxes = tab.locator("details.of-claim > summary").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect()).map(box => [box.top, box.bottom])"
    )
    assert len(boxes) > 3
    assert all(above[1] <= below[0] for above, below in itertools.pairwise(boxes))
