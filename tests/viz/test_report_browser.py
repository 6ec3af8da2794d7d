"""The report in a real browser, as a reader works with it: pointing, clicking, keys, what is shown then."""

from __future__ import annotations

import json

from viz.browser_cases import ActionChains, By, Keys, away, focused, lit, point, press, some


def test_pointing_at_a_node_lights_its_box_and_triplets(view):
    node = some(view, ".node:not(.lone)")[0]
    box = node.get_attribute("data-box")
    point(view, node)
    assert box in lit(view, ".box")
    assert box in lit(view, ".tag")
    assert box in lit(view, ".node")
    links = json.loads(view.execute_script("return document.getElementById('data').textContent"))["scenes"][0]["links"]
    expected = {str(k) for k, ends in enumerate(links) if int(box) in ends}
    assert lit(view, ".triplet") == expected
    dim = some(view, ".edge:not(.on)")
    assert dim
    assert all(float(e.value_of_css_property("opacity")) < 0.5 for e in dim)
    away(view)
    assert lit(view, ".box") == lit(view, ".triplet") == set()


def test_pointing_at_a_triplet_lights_both_boxes(view):
    triplet = some(view, "button.triplet")[1]
    point(view, triplet)
    assert len(lit(view, ".box")) == len(lit(view, ".node")) == 2
    assert lit(view, ".triplet") >= {triplet.get_attribute("data-link")}
    dim = some(view, ".box:not(.on)")
    assert all(float(e.value_of_css_property("opacity")) < 0.5 for e in dim)
    pills = some(view, ".pill.on")
    assert len(pills) == 1
    assert triplet.get_attribute("data-link") in pills[0].get_attribute("data-link").split()


def test_a_click_shows_attention_and_escape_lets_go(view):
    node = some(view, ".node")[0]
    point(view, node)
    node.click()
    n = len(some(view, ".box"))
    assert len(some(view, ".rays line")) == n - 1
    name = node.get_attribute("aria-label").removeprefix("object ")
    rows = some(view, ".weights li")
    assert some(view, ".weights p")[0].text == f"{' '.join(name.split())} attends to"
    shares = [int(row.find_element(By.CLASS_NAME, "number").text.rstrip("%")) for row in rows]
    assert shares == sorted(shares, reverse=True)
    if n <= 7:
        assert abs(sum(shares) - 100) <= len(shares)
    assert len(some(view, ".box.pinned")) == 1
    away(view)
    assert some(view, ".rays line")  # it stays until it is let go
    press(view, Keys.ESCAPE)
    node.send_keys(Keys.ESCAPE)
    assert not some(view, ".rays line")
    assert not some(view, ".box.pinned")


def test_attention_of_the_whole_picture(view):
    whole = some(view, ".whole")[0]
    whole.click()
    assert whole.get_attribute("aria-pressed") == "true"
    assert some(view, ".weights p")[0].text == "The graph vector attends to"
    fills = [float(e.value_of_css_property("fill-opacity")) for e in some(view, ".heat")]
    assert max(fills) > 0.2
    whole.click()
    assert whole.get_attribute("aria-pressed") == "false"


def test_the_strip_by_keyboard(view):
    thumbs = view.find_elements(By.CSS_SELECTOR, ".thumb")
    view.execute_script("arguments[0].focus()", thumbs[0])
    press(view, Keys.ARROW_RIGHT)
    assert focused(view) == thumbs[1]
    assert thumbs[1].get_attribute("aria-selected") == "true"
    assert view.find_element(By.CSS_SELECTOR, ".scene.current").get_attribute("id") == "scene-1"
    press(view, Keys.END)
    assert focused(view) == thumbs[-1]
    press(view, Keys.ARROW_RIGHT)
    assert focused(view) == thumbs[0]
    assert sum(t.get_attribute("tabindex") == "0" for t in thumbs) == 1


def test_everything_is_reached_by_tab_and_shows_it(view):
    """From the open thumbnail: boxes, graph, triplets, attention; one stop each, each with a visible mark."""
    view.execute_script("document.querySelector('.thumb[aria-selected=true]').focus()")
    stops = []
    for _ in range(4):
        press(view, Keys.TAB)
        stops.append(focused(view).get_attribute("class").split()[0])
    assert stops == ["box", "node", "triplet", "whole"]
    ActionChains(view).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
    assert focused(view).value_of_css_property("outline-style") == "solid"
    press(view, Keys.ARROW_DOWN)
    assert focused(view).get_attribute("data-link") == "1"
    assert "1" in lit(view, ".triplet")


def test_boxes_by_keyboard(view):
    view.execute_script("document.querySelector('.thumb[aria-selected=true]').focus()")
    press(view, Keys.TAB)
    assert focused(view).get_attribute("data-box") == "0"
    halo = focused(view).find_element(By.CSS_SELECTOR, ".halo")
    assert float(halo.value_of_css_property("stroke-width").removesuffix("px")) >= 8
    press(view, Keys.ARROW_RIGHT)
    assert focused(view).get_attribute("data-box") == "1"
    assert "1" in lit(view, ".node")
    press(view, Keys.ENTER)
    assert some(view, ".box.pinned")[0].get_attribute("data-box") == "1"
    assert "attends to" in some(view, ".weights p")[0].text
    press(view, Keys.ESCAPE)
    assert not some(view, ".box.pinned")


def test_which_images_are_shown_can_be_chosen(view):
    view.find_element(By.CSS_SELECTOR, ".choices button[data-why=best]").click()
    shown = [t for t in view.find_elements(By.CSS_SELECTOR, ".thumb") if t.is_displayed()]
    assert shown
    assert {t.get_attribute("data-why") for t in shown} == {"best"}
    current = view.find_element(By.CSS_SELECTOR, ".scene.current .badge")
    assert current.text == "best"


def test_an_address_opens_an_image_and_an_object(view, page):
    view.get(f"{page.as_uri()}#scene-2-box-1")
    view.refresh()
    assert view.find_element(By.CSS_SELECTOR, ".scene.current").get_attribute("id") == "scene-2"
    assert some(view, ".box.pinned")[0].get_attribute("data-box") == "1"
    view.execute_script("location.hash = '#scene-9999'")  # no such image: nothing happens
    assert view.find_element(By.CSS_SELECTOR, ".scene.current").get_attribute("id") == "scene-2"


def test_curves_read_out_values(view):
    chart = view.find_element(By.ID, "chart-recall")
    view.execute_script("arguments[0].focus()", chart)
    readout = chart.find_element(By.CSS_SELECTOR, ".readout")
    assert readout.text == "Epoch 5: R@20 34, R@50 41, R@100 40.5, mR@50 9"
    press(view, Keys.ARROW_LEFT)
    assert readout.text.startswith("Epoch 4: R@20 33, R@50 40")
    point(view, chart.find_element(By.TAG_NAME, "svg"))
    assert "Epoch 3" in readout.text


def test_the_table_sorts_and_unfolds(view):
    def shown():
        return [r for r in view.find_elements(By.CSS_SELECTOR, ".bars tbody tr") if r.is_displayed()]

    assert len(shown()) == 16
    view.find_element(By.CSS_SELECTOR, ".more").click()
    assert len(shown()) == 24
    counts = [float(r.get_attribute("data-count")) for r in shown()]
    assert counts == sorted(counts, reverse=True)
    head = view.find_element(By.CSS_SELECTOR, "[data-sort=name]")
    head.click()
    names = [r.get_attribute("data-name") for r in shown()]
    assert names == sorted(names)
    head.click()
    assert [r.get_attribute("data-name") for r in shown()] == sorted(names, reverse=True)
    assert head.find_element(By.XPATH, "..").get_attribute("aria-sort") == "descending"


def test_published_figures_switch(view):
    button = view.find_element(By.CSS_SELECTOR, ".choices button[data-plot='ngR@50']")
    button.click()
    assert [p.get_attribute("data-plot") for p in view.find_elements(By.CSS_SELECTOR, ".plot") if p.is_displayed()] == [
        "ngR@50"
    ]
    assert button.get_attribute("aria-pressed") == "true"
