#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`silc view` in a real browser: what a person does with it, and what they must see.

    browser_test.py SILC SOURCE_FOLDER [--policies PROGRAM] [--pictures FOLDER] [--only NAMES]

Exit 0 when every check holds, 1 when one does not, 77 (skipped, with the reason) where no browser is. Frame rates are
not judged: without a GPU Chromium draws in software.
"""
import argparse
import base64
import contextlib
import http.server
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

SKIPPED = 77
TRIES = 2
BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


try:
    from playwright.sync_api import sync_playwright
except ImportError:
    skip("Playwright is not installed: tools/setup/venv.sh browser installs it")

from browser_drawn import (SHAKEN_BY, changed, check_arrows, check_camera, check_colours, check_curves, check_ellipsoids, check_pace,
                           check_pictures, check_predicted_line, check_readme_picture, check_shadows, check_shapes,
                           check_state_to_pixel, check_table, dot, dragged_policy, mean, next_pictures, paused, paused_when,
                           recorded, shaken, size, write_policy)
from browser_page import (GENEROUS, STEADY, camera_rests, comes, frame, keep_rows, notices, on_screen, open_page, pixels,
                          serving, simulate, until)


def find_browser():
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    return skip("no Chromium: apt-get install chromium-headless-shell")


def newest(page):
    """[s] The time of what came last: it may not be drawn yet."""
    return page.evaluate("silcView.viewer.recorder.newest")


def push_by_key(page, key, robot=0):
    """Presses the key of a push until it is in a frame that came, which need not have been drawn. A push lasts 3 s: while a
    busy machine holds up the page for as long, none of its frames may come."""
    def felt():
        begin = newest(page)
        page.keyboard.press(key)
        return comes(lambda: any(f["time"] > begin and f["robots"][robot]["push"] == 2 for f in recorded(page, 4)), 10)
    until(felt, f"the push of key {key}")


# ---- what is checked ----------------------------------------------------------------------------------------


def check_loads_and_shows(browser, server, test):
    page = open_page(browser, server.url)
    page.click("#reset")  # who has stood here before may have fallen
    state = until(lambda: (s := frame(page)) and all(r["status"] == 0 and math.isfinite(r["radius"] or math.nan)
                                                     for r in s["robots"]) and s, "both stand and are observed")
    assert len(state["robots"]) == 2
    known = lambda: all(math.isfinite(v) for r in recorded(page, 1)[-1]["robots"] for v in r["places"][1][2])
    page.evaluate(STEADY)
    with paused_when(page, known, "the budgets of the left hands are known"):
        camera_rests(page)
        def around(point, radius):
            next_pictures(page)
            return [pixels(page, a["x"], a["y"], radius) for a in
                    (on_screen(page, i, r["points"][point]["p"]) for i, r in enumerate(frame(page)["robots"]))]
        differ = lambda one, other: [len(changed(p, q)) for p, q in zip(one, other)]
        until(lambda: differ(around(1, 24), around(1, 24)) == [0, 0], "a picture of the same moment is the same")
        assert len(set(pixels(page, 12, 300, 8))) < 60, "beside the robots there is plain ground"
        # ellipsoids at the left hands, robots at their hips: gone with what draws them; colours are checked elsewhere
        for what, point, radius, hide, least in (
                ("ellipsoids", 1, 24, "ellipsoids.pairs.forEach((p) => { p.felt.material.opacity = p.budget.material.opacity = 0; })", 60),
                ("robots", 0, 40, "robots.robots.forEach((r) => { r.group.visible = false; })", 1000)):
            with_them = around(point, radius)
            page.evaluate("() => { const { robots, ellipsoids } = silcView.viewer; " + hide + "; }")
            gone = differ(with_them, around(point, radius))
            print(f"   pixels of {what}: {gone} of {(2 * radius) ** 2}")
            assert min(gone) > least
    # the curves have been drawn
    drawn = page.evaluate("""() => ['sigma', 'radius'].map((k) => { const c = document.getElementById('curve-' + k);
        return new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size; })""")
    assert min(drawn) > 5, drawn
    assert page.faults == [], page.faults
    page.context.close()


def check_drag_agrees_with_shake(browser, server, test):
    """Drags the left hand and compares with what `silc observe --shake` measures for such a force."""
    compliance = shaken(test, dragged_policy(test))["measured"][0]["C_x"]
    page = open_page(browser, server.url)
    page.click("#reset")
    simulate(page, 6)  # trained policies take that long to stand still
    page.evaluate("silcView.viewer.orbit.elevation = 0; silcView.viewer.orbit.azimuth = 0.6;")
    with paused(page):  # the hand is where it was seen when the mouse comes
        camera_rests(page)
        next_pictures(page)
        hand = frame(page)["robots"][0]["points"][1]["p"]
        at = on_screen(page, 0, hand)
        # a force like that of --shake: so long is the spring of 200 N/m then, and so far has the hand followed
        above = on_screen(page, 0, [hand[0], hand[1], hand[2] + SHAKEN_BY * (1 / 200 + compliance[2][2])])
        page.mouse.move(at["x"], at["y"])
        page.mouse.down()
        until(lambda: frame(page)["robots"][0]["push"] == 1, "the hand is held")
    for k in range(1, 11):
        page.mouse.move(at["x"], at["y"] + (above["y"] - at["y"]) * k / 10)
        time.sleep(0.05)
    simulate(page, 5)
    # a policy sways a little: what it does on average over two seconds, by every frame that came
    held = [f["robots"][0] for f in recorded(page, 2)]
    f, moved = (mean([r[key] for r in held]) for key in ("f", "moved"))
    expected = [dot(row, f) for row in compliance]
    force, far = size(f), size(expected)
    error = size([e - m for e, m in zip(expected, moved)]) / far
    print(f"   {force:.2f} N moved it {100 * size(moved):.2f} cm; by --shake {100 * far:.2f} cm; they differ by {100 * error:.1f} %")
    assert 0.75 * SHAKEN_BY < force < 1.25 * SHAKEN_BY, force
    assert error < 0.1, (moved, expected)
    # what a person reads is that, too
    def read():
        newtons, centimetres = [float(v) for v in re.findall(r"[\d.]+", page.text_content("#push-line-0"))][:2]
        return abs(newtons - force) < 0.3 and abs(centimetres - 100 * far) < 0.1 * 100 * far + 0.1
    until(read, f"{force} N and {100 * far} cm in words")
    label = page.text_content(".label.push")
    assert re.search(r"[\d.]+ N · [\d.]+ cm", label), label
    page.mouse.up()
    until(lambda: frame(page)["robots"][0]["push"] == 0, "the hand is free")
    assert page.faults == [], page.faults
    page.context.close()


def check_mouse(browser, server, test):
    """Any body can be dragged, and it is the point under the mouse that is pulled; beside the robots the mouse turns,
    moves and zooms the camera."""
    page = open_page(browser, server.url)
    def stand_anew():
        page.click("#reset")
        simulate(page, 1)
    for name in ("torso_link", "left_knee_link"):
        stand_anew()
        # a place at which that body is in front, found by the page's own ray; a robot that is held by the clock is not
        # elsewhere when it is taken
        page.focus("#canvas")
        page.keyboard.press(" ")
        until(lambda: frame(page)["paused"], "paused")
        camera_rests(page)
        next_pictures(page)
        at = page.evaluate("""(name) => { const v = silcView.viewer, { robots, drag } = v, { bodies } = robots.description;
            const box = drag.canvas.getBoundingClientRect(), body = bodies.indexOf(name), found = [];
            for (let y = box.top + 20; y < box.bottom; y += 6) for (let x = box.left + 20; x < box.left + box.width / 2; x += 6) {
                const hit = drag.pick({ clientX: x, clientY: y });
                if (hit && hit.object.userData.robot === 0 && hit.object.userData.body === body) found.push([x, y, hit.point.toArray()]);
            }
            return found.length ? found[found.length >> 1] : bodies.join(' '); }""", name)
        assert len(at) == 3, f"{name} is nowhere to be seen: {at}"
        x, y, seen = at
        page.mouse.move(x, y)
        page.mouse.down()
        held = until(lambda: (r := frame(page)["robots"][0])["push"] == 1 and r, f"{name} is held")
        # of the page's floor: the robots stand beside each other there
        point = page.evaluate("(p) => silcView.viewer.robots.place(0, p).toArray()", held["p"])
        assert size([a - b for a, b in zip(point, seen)]) < 0.01, (name, point, seen)
        page.keyboard.press(" ")
        page.mouse.move(x + 25, y)
        # to the right of the picture, as the camera looks at it
        right = page.evaluate("""() => { const { azimuth } = silcView.viewer.orbit; return [-Math.sin(azimuth), Math.cos(azimuth), 0]; }""")
        until(lambda: sum(a * b for a, b in zip(frame(page)["robots"][0]["f"], right)) > 3, f"{name} is pulled that way")
        until(lambda: "pushed with" in page.text_content("#push-line-0"), "in words")
        page.mouse.up()
        until(lambda: frame(page)["robots"][0]["push"] == 0, f"{name} is let go")
    stand_anew()
    assert page.evaluate("silcView.viewer.drag.pick({ clientX: 20, clientY: 300 }) === null"), "a robot is where the floor should be"
    camera = lambda: page.evaluate("(({azimuth, elevation, distance, side, height}) => [azimuth, elevation, distance, side.y, height])(silcView.viewer.orbit)")
    def moved(*which):
        """What has changed since it was last asked, and nothing else."""
        nonlocal before
        changed = lambda now: {k for k in range(5) if abs(now[k] - before[k]) > 1e-3}
        before = until(lambda: (now := camera()) and changed(now) == set(which) and now,
                       lambda: f"{which} of the camera, and nothing else: {changed(camera())}")
    def sweep(dx, dy, button="left", key=None):
        page.mouse.move(20, 300)
        if key:
            page.keyboard.down(key)
        page.mouse.down(button=button)
        page.mouse.move(20 + dx, 300 + dy)
        page.mouse.up(button=button)
        if key:
            page.keyboard.up(key)
    before = camera()
    sweep(60, 0)
    moved(0)
    sweep(0, 40)
    moved(1)
    sweep(60, 0, button="right")
    moved(3)
    sweep(0, 40, key="Shift")
    moved(4)
    page.mouse.wheel(0, 200)
    until(lambda: camera()[2] > before[2], "the wheel goes away")
    moved(2)
    assert frame(page)["robots"][0]["push"] == 0
    assert page.faults == [], page.faults
    page.context.close()


def check_changes(browser, server, test):
    page = open_page(browser, server.url)
    for robot in (0, 1):
        page.select_option(f"#policy-{robot}", label="g1_loco_silc_high_stiff")
    until(lambda: frame(page)["robots"][0]["policy"] == frame(page)["robots"][1]["policy"] > 1, "another policy")
    page.select_option("#budget-0", label="high-stiff")
    until(lambda: frame(page)["robots"][0]["budget"] > 0, "another budget")
    assert frame(page)["robots"][1]["budget"] == 0
    page.select_option("#gravity", "2")
    until(lambda: frame(page)["gravity"] == 2, "gravity followed")
    # a command, by its slider and by its keys
    page.focus("#vx")
    # one after the other: a slider that nobody has moved for 3 s goes back to what the server last said
    for k in range(1, 7):
        page.keyboard.press("ArrowRight")
        until(lambda: abs(frame(page)["command"][0] - 0.05 * k) < 1e-3, f"{0.05 * k:.2f} m/s")
    until(lambda: frame(page)["command"][4] == 1, "walking")
    page.focus("#canvas")
    page.keyboard.press("w")
    until(lambda: abs(frame(page)["command"][0] - 0.4) < 1e-3, "0.4 m/s by key")
    def walked():
        """[m] forwards within the last 2 s. One that falls begins again where it first stood, and counts from there on."""
        robots = [f["robots"][0] for f in recorded(page, 2)]
        along = [r["places"][0][0][0] for r in robots if r["status"] == 0 and r["falls"] == robots[-1]["falls"]]
        return along[-1] - along[0] if along else 0
    until(lambda: walked() > 0.3, "it walks")
    page.keyboard.press("x")
    until(lambda: frame(page)["command"][4] == 0, "stands still")
    page.keyboard.press(" ")
    until(lambda: frame(page)["paused"], "paused")
    page.keyboard.press(" ")
    until(lambda: not frame(page)["paused"], "goes on")
    page.select_option("#speed", "0.5")
    until(lambda: frame(page)["speed"] == 0.5, "half speed")
    page.select_option("#speed", "1")
    page.keyboard.press("Escape")
    page.focus("#canvas")
    push_by_key(page, "1", robot=1)
    page.keyboard.press("r")
    until(lambda: frame(page)["robots"][0]["push"] == 0, "reset")
    # a pull without a mouse
    page.keyboard.press("f")
    until(lambda: abs(size(frame(page)["robots"][0]["f"]) - 10) < 1, "a steady pull of 10 N")
    page.keyboard.press("f")
    until(lambda: frame(page)["robots"][0]["push"] == 0, "let go")
    assert page.faults == [], page.faults
    page.context.close()


def check_pushes(browser, server, test):
    """The paper's pushes by their buttons, in slow motion, so that the short ones are seen; both robots feel them."""
    page = open_page(browser, server.url)
    page.click("#reset")
    simulate(page, 1)
    page.select_option("#speed", "0.1")
    until(lambda: abs(frame(page)["speed"] - 0.1) < 1e-3, "a tenth of the speed")
    # by the server's own clock in the frames that came: a busy machine may be slower, and tells the page late
    def slow():
        new = [f for f in recorded(page, 1) if abs(f["speed"] - 0.1) < 1e-3]
        return new[-1]["sent"] - new[0]["sent"] > 3 and (new[-1]["time"] - new[0]["time"]) / (new[-1]["sent"] - new[0]["sent"])
    rate = until(slow, "three seconds in slow motion")
    assert 0 < rate < 0.12, f"{rate} of real time is no tenth"
    # from the top of the panel: what is said of a push has its room, and no button goes away from under the mouse
    place = lambda: page.evaluate("document.getElementById('push-0').getBoundingClientRect().top + document.getElementById('panel').scrollTop")
    until(lambda: page.text_content("#push-line-0") == "", "nothing is said of a push")
    top = place()
    for button, force in ((0, 150), (1, 40), (2, 600)):
        def felt():
            """Pushes robots that stand and looks for it in the frames that came; of a short push on a busy machine none may
            come. A robot that has fallen feels no push."""
            page.click("#reset")
            page.click(f"#push-{button}")
            return comes(lambda: [x["robots"] for x in recorded(page, 2) if abs(size(x["robots"][0]["f"]) - force) < 0.5
                                  and all(robot["status"] == 0 for robot in x["robots"])], 10)
        both = until(felt, f"{force} N")
        assert all(first["f"] == second["f"] for first, second in both), "the same push"
        if button == 1:
            # what is on the screen is older than what came last, and may be of after the push
            def seen():
                robot = comes(lambda: (r := frame(page)["robots"][0]) and abs(size(r["f"]) - force) < 0.5 and r, 10)
                if robot and comes(lambda: "pushed with 40.0 N" in page.text_content("#push-line-1"), 10):
                    return robot
                felt()
                return None
            robot = until(seen, "the push is seen, and in words")
            assert size([a - b for a, b in zip(robot["p"], robot["points"][1]["p"])]) < 1e-3, "at the left hand"
            until(lambda: abs(place() - top) < 0.5, lambda: f"the buttons moved by {place() - top} px")
        if button == 0:
            # the displacement is followed on
            def followed():
                said = lambda words, place: comes(lambda: re.fullmatch(words, page.text_content(place)), 10)
                if said(r"after the push: [\d.]+ cm from where it was", "#push-line-0") and said(r"[\d.]+ cm", ".label.push"):
                    return True
                felt()
                return None
            until(followed, "that the push is over, in words, and at the robot")
        page.click("#reset")
        until(lambda: frame(page)["robots"][0]["push"] == 0, "over")
    page.select_option("#speed", "1")
    until(lambda: frame(page)["speed"] == 1, "real time again")
    # said plainly; how slow this machine is cannot be known here
    for speed, achieved, words in ((1, 0.5, "runs at 50 % of real time"), (1, 1, ""), (0.25, 0.25, ""),
                                   (1, 0.483, "runs at 50 % of real time"), (1, 0.034, "runs at 3 % of real time"),
                                   (1, 0.949, "runs at 95 % of real time"), (0.5, 0.25, "runs at 50 % of the asked speed")):
        said = page.evaluate("""([speed, achieved]) => { silcView.viewer.showBanner({paused: false, speed, achieved});
            return document.getElementById('banner').textContent; }""", [speed, achieved])
        assert said == words, said
    assert page.faults == [], page.faults
    page.context.close()


def check_keyboard(browser, server, test):
    """What has no test elsewhere, without a mouse."""
    page = open_page(browser, server.url)
    assert page.is_hidden("#told-0"), "these policies are not told their budget"
    page.focus("#same-push")
    page.keyboard.press(" ")
    until(lambda: not frame(page)["same"], "a box is switched by Space")
    assert not frame(page)["paused"]
    # a pull on the second robot alone
    page.select_option("#pull-robot", value="1")
    page.focus("#canvas")
    page.keyboard.press("f")
    until(lambda: frame(page)["robots"][1]["push"] == 1, "the second is pulled")
    assert frame(page)["robots"][0]["push"] == 0, "and the first is not"
    page.keyboard.press("f")
    until(lambda: frame(page)["robots"][1]["push"] == 0, "let go")
    page.focus("#same-push")
    page.keyboard.press(" ")
    until(lambda: frame(page)["same"], "both again")
    page.focus("#canvas")
    for key in "23":
        push_by_key(page, key)
        page.keyboard.press("r")
        until(lambda: frame(page)["robots"][0]["push"] == 0, "reset")
    page.keyboard.press("t")
    until(lambda: frame(page)["command"][4] == 1, "walks")
    page.keyboard.press("t")
    until(lambda: frame(page)["command"][4] == 0, "stands")
    for keys, index, value in (("a", 1, 0.1), ("d", 1, 0), ("q", 2, 0.1), ("e", 2, 0), ("s", 0, -0.1), ("x", 0, 0)):
        page.keyboard.press(keys)
        until(lambda: abs(frame(page)["command"][index] - value) < 1e-3, f"key {keys}")
    page.focus("#height")
    page.keyboard.press("ArrowLeft")
    until(lambda: abs(frame(page)["command"][3] - 0.74) < 1e-3, "a little lower")
    page.focus("#canvas")
    camera = "(({azimuth, distance, side, height}) => [azimuth, distance, side.y, height])(silcView.viewer.orbit)"
    for key, which in (("ArrowLeft", 0), ("+", 1), ("Shift+ArrowRight", 2), ("Shift+ArrowUp", 3)):
        before = page.evaluate(camera)
        page.keyboard.press(key)
        assert page.evaluate(camera)[which] != before[which], f"{key} moves the camera"
    # larger ellipsoids; of one moment, since a robot that steps or settles gives way by ever other amounts
    page.keyboard.press("r")
    wide = "silcView.viewer.ellipsoids.pairs[0].budget.matrix.elements[0]"
    known = lambda: all(math.isfinite(v) for v in recorded(page, 1)[-1]["robots"][0]["places"][0][2])
    with paused_when(page, known, "the budget of the centre of mass is known"):
        next_pictures(page)
        before = page.evaluate(wide)
        page.focus("#force")
        page.keyboard.press("End")
        # ten times as far, but for the 2 mm that every ellipsoid has to be seen
        until(lambda: abs(page.evaluate(wide) - (0.002 + 10 * (before - 0.002))) < 1e-6, "what 100 N would move")
        assert page.text_content("#force-out") == page.text_content("#legend-force") == "100 N"
    page.focus("#canvas")
    page.keyboard.press("h")
    until(lambda: "Nobody" in page.text_content("#hand-text"), "let go")
    page.keyboard.press("h")
    until(lambda: "You have" in page.text_content("#hand-text"), "taken again")
    assert page.faults == [], page.faults
    page.context.close()


def check_other_robot(browser, test):
    """A robot without hands: it is drawn, pulled and judged, and nothing is said of hands."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_policy(test, "handless", folder)
        with serving(test.silc, test.source, path, "--robot", "berkeley", "--mode", "compliance") as server:
            page = open_page(browser, server.url)
            assert "Berkeley" in page.text_content("#robot-title"), page.text_content("#robot-title")
            robot = until(lambda: (r := frame(page)["robots"][0]) and math.isfinite(r["points"][0]["worst"]) and r, "it is judged")
            assert all(math.isnan(p["worst"]) for p in robot["points"][1:3]), robot["points"]
            visible = lambda: page.evaluate("silcView.viewer.ellipsoids.pairs.map((p) => p.felt.visible)")
            until(lambda: visible() == [True, False, False], lambda: f"the centre of mass alone: {visible()}")
            rows = page.evaluate("[...document.querySelectorAll('.robot tbody th')].map((n) => n.textContent)")
            assert rows == ["centre of mass"], rows
            for said in ("#push-hint", "#pull-body", "#push-buttons"):
                assert "hand" not in page.text_content(said), page.text_content(said)
            assert page.is_hidden("#same-push-row"), "there is one robot"
            assert page.locator("#push-buttons button").count() == 2
            with paused(page):  # its torso is where it was seen when the mouse comes
                camera_rests(page)
                next_pictures(page)
                x, y, z = frame(page)["robots"][0]["points"][0]["p"]
                torso = on_screen(page, 0, [x, y, z + 0.22])  # above the centre of mass
                page.mouse.move(torso["x"], torso["y"])
                page.mouse.down()
                until(lambda: frame(page)["robots"][0]["push"] == 1, "it is held")
            page.mouse.move(torso["x"] + 20, torso["y"])
            until(lambda: size(frame(page)["robots"][0]["f"]) > 3, "and pulled")
            page.mouse.up()
            until(lambda: frame(page)["robots"][0]["push"] == 0, "let go")
            page.focus("#canvas")
            page.keyboard.press("f")
            until(lambda: frame(page)["robots"][0]["push"] == 1, "pulled by key")
            page.keyboard.press("f")
            until(lambda: frame(page)["robots"][0]["push"] == 0, "let go")
            assert page.faults == [], page.faults
            page.context.close()


def check_told_budget(browser, test):
    """A policy that is told its budget has sliders for it; others have none."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_policy(test, "commanded", folder)
        with serving(test.silc, test.source, path, "policies/g1_loco_baseline.onnx", "--budget", "hands=200") as server:
            page = open_page(browser, server.url)
            until(lambda: page.is_visible("#told-0"), "the sliders")
            assert page.is_hidden("#told-1"), "the baseline is told nothing"
            told = lambda: frame(page)["robots"][0]["told"]
            assert abs(told()[1] - 200) < 1e-3, told()
            until(lambda: page.text_content("#told-0-1-out") == "200 N/m", "in words")
            for key, value in (("End", 1000), ("Home", 100), ("ArrowRight", 101)):
                page.focus("#told-0-1")
                page.keyboard.press(key)
                until(lambda: abs(told()[1] - value) < 0.5, f"{value} N/m by key {key}")
            until(lambda: page.text_content("#told-0-1-out") == "101 N/m", "that one in words")
            page.focus("#told-0-0")
            page.keyboard.press("Home")
            until(lambda: abs(told()[0] - 200) < 1e-3 and abs(told()[1] - 101) < 0.5, "the centre of mass, too")
            # what it was not trained for is answered in words and changes nothing
            page.evaluate("""async () => silcView.viewer.connection.send(
                (await import('/page/protocol.js')).input.told(0, [5000, 200, 100]))""")
            until(lambda: any("5000 is outside [200, 3000]" in text for text in notices(page)), "refused in words")
            assert abs(told()[0] - 200) < 1e-3
            if test.pictures:
                page.screenshot(path=os.path.join(test.pictures, "told.png"))
            page.select_option("#policy-0", label="g1_loco_baseline")
            until(lambda: page.is_hidden("#told-0"), "a policy that is told nothing has none")
            assert page.faults == [], page.faults
            page.context.close()


def check_recorder(browser, server, test):
    page = open_page(browser, server.url)
    assert page.is_hidden("#link-row"), "no address is shown before one is asked for"
    simulate(page, 2)
    # back by the slider's keys and forth by playing
    page.focus("#scrub")
    page.keyboard.press("PageDown")
    at_moment = "!silcView.viewer.recorder.live && silcView.frame() === silcView.viewer.recorder.shown"
    until(lambda: page.evaluate(at_moment), "the past")
    past = frame(page)["time"]
    assert past < newest(page) - 0.5, "back by a step of the slider"
    page.click("#play")
    until(lambda: frame(page)["time"] > past + 0.3, "it plays")
    page.focus("#canvas")
    page.keyboard.press("l")
    until(lambda: page.evaluate("silcView.viewer.recorder.live"), "live again by its key")
    page.evaluate("silcView.viewer.recorder.scrub(-1)")
    # a picture that is late is of the past, too: the one of that moment is waited for
    until(lambda: page.evaluate(at_moment), "that moment is drawn")
    assert frame(page)["time"] < newest(page) - 0.9, "one second ago"
    page.click("#link")
    link, shown = page.input_value("#link-text"), frame(page)
    other = open_page(browser, server.url, watches=True)
    other.goto("about:blank")
    other.goto(link)
    until(lambda: frame(other) and abs(frame(other)["time"] - shown["time"]) < 1e-9, "the same moment, from its address")
    assert frame(other)["robots"][0]["p"] == shown["robots"][0]["p"]
    time.sleep(0.3)
    assert abs(frame(other)["time"] - shown["time"]) < 1e-9, "and it stays"
    other.context.close()
    before = newest(page)
    page.click("#live")
    until(lambda: page.evaluate("silcView.viewer.recorder.live") and frame(page)["time"] >= before, "live again")
    downloads = []
    page.on("download", lambda download: downloads.append(download))
    page.click("#save")
    until(lambda: frame(page) and len(downloads) == 2, "a file for each robot")
    by_name = {d.suggested_filename: d for d in downloads}
    assert set(by_name) == {"g1_loco_silc_compliance.npz", "g1_loco_baseline.npz"}, by_name
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "recording.npz")
        by_name["g1_loco_silc_compliance.npz"].save_as(path)
        keep_rows(path, 25)
        done = subprocess.run([test.silc, "observe", "policies/g1_loco_silc_compliance.onnx", "--states", path],
                              cwd=test.source, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    page.context.close()


def check_two_browsers(browser, server, test):
    """Two browsers, each with its own processes: one has the hand, the other watches and is told why nothing happens."""
    other = test.launch()
    try:
        share_the_hand(open_page(browser, server.url), open_page(other, server.url, watches=True))
    finally:
        with contextlib.suppress(Exception):  # it may have ended by itself, which is not what is to be told
            other.close()


def share_the_hand(first, second):
    """The first page has its hand on the robots; the second comes later."""
    until(lambda: "You have" in first.text_content("#hand-text"), "the first has the hand")
    until(lambda: "you watch" in second.text_content("#hand-text"), "the second watches")
    until(lambda: "2 pages" in first.text_content("#hand-text"), "both are counted")
    second.focus("#canvas")
    second.keyboard.press(" ")
    first.keyboard.press("w")
    until(lambda: frame(second)["command"][0] > 0.05, "what the first does the second sees")
    assert not frame(second)["paused"], "what the second wants does not happen"
    told = "another page has its hand on the robots: H asks for it"
    assert notices(second) == [told], notices(second)
    first.keyboard.press("x")
    # whatever it tries; one sentence stands there once
    second.click("#push-0")
    second.select_option("#policy-0", label="g1_loco_baseline")
    at = on_screen(second, 0, frame(second)["robots"][0]["points"][1]["p"])
    second.mouse.move(at["x"], at["y"])
    second.mouse.down()
    second.mouse.move(at["x"] + 5, at["y"] - 20)
    second.mouse.up()
    second.keyboard.press("f")
    assert notices(second) == [told], notices(second)
    assert second.evaluate("(told) => [...document.querySelectorAll('#notices p')].filter((p) => p.textContent === told).length", told) <= 1
    simulate(second, 0.3)
    assert frame(second)["robots"][0]["push"] == 0, "nothing was pushed"
    until(lambda: second.input_value("#policy-0") == "0", "the list shows the robot's policy again")
    faint = lambda page: page.evaluate("""() => [...document.querySelectorAll('.needs-hand')].filter((n) => n.offsetParent)
        .map((n) => +getComputedStyle(n).opacity)""")
    assert len(faint(second)) >= 7 and max(faint(second)) < 0.7, faint(second)
    assert min(faint(first)) == 1, faint(first)
    until(lambda: frame(second)["command"][0] == 0, "the first has the robots stand")
    # a busy machine may need 10 s from one key to the next: between them the first is busy with its mouse's spring
    first.evaluate("""async () => { const { input } = await import('view/protocol.js');
        window.busy = setInterval(() => silcView.viewer.act(input.spring(200)), 300); }""")
    first.keyboard.press("w")
    until(lambda: frame(second)["command"][0] > 0.05, "the first goes on using its hand")
    second.keyboard.press("h")
    until(lambda: any("has used it within 10 s" in text for text in notices(second)), "it is not given a hand that is used")
    first.evaluate("clearInterval(busy)")
    first.keyboard.press("x")
    assert first.faults == [] and second.faults == [], first.faults + second.faults
    first.context.close()
    until(lambda: "Nobody" in second.text_content("#hand-text"), "the hand is free once the first has gone")
    second.keyboard.press("w")
    until(lambda: "nobody has a hand on the robots: H takes them in hand" in notices(second), "it is told so")
    second.click("#hand")
    until(lambda: "You have" in second.text_content("#hand-text"), "and can be taken")
    assert min(faint(second)) == 1, faint(second)


def check_quick_screen(browser, server, test):
    """A screen of 360 Hz, and sliders as quick as that, send no more than one message for each frame that came, and the
    last of them arrives."""
    page = open_page(browser, server.url)
    page.focus("#canvas")
    page.keyboard.press("f")
    until(lambda: frame(page)["robots"][0]["push"] == 1, "a steady pull")
    sent = page.evaluate("""() => new Promise((done) => { const { viewer } = silcView, { connection, drag } = viewer;
        const counts = { came: 0, pulls: 0, commands: 0, ticks: 0 }, send = connection.send, slider = document.getElementById('vx');
        const { frame } = connection.handlers;
        connection.handlers.frame = (buffer) => { ++counts.came; frame(buffer); };
        connection.send = function (bytes) { const type = new DataView(bytes).getUint8(2);
            if (type === 4) ++counts.pulls;
            if (type === 6) ++counts.commands;
            send.call(this, bytes); };
        // as long as it takes to say something: a busy machine draws and steps slowly
        const begin = performance.now(), passed = () => performance.now() - begin;
        const tick = () => {
            for (let k = 0; k < 10; ++k) { ++counts.ticks; drag.tick();
                slider.value = 0.05 * (counts.ticks % 20); slider.dispatchEvent(new Event('input')); }
            const enough = passed() > 1500 && counts.ticks > 1000 && counts.came > 25;
            if (!enough && passed() < 180000) { setTimeout(tick, 1); return; }
            slider.value = 0.15;
            slider.dispatchEvent(new Event('input'));
            connection.handlers.frame = frame;
            delete connection.send;
            done(counts); };
        tick(); })""")
    print(f"   {sent['ticks']} pictures and movements of a slider, {sent['came']} frames: {sent['pulls']} pulls, {sent['commands']} commands")
    assert sent["ticks"] > 500 and sent["came"] > 10, sent
    # each key of the keyboard that is sent between lets what waits go first
    assert 10 < sent["pulls"] <= sent["came"] + 2 and 10 < sent["commands"] <= sent["came"] + 2, sent
    until(lambda: abs(frame(page)["command"][0] - 0.15) < 1e-3, "the last movement arrives")
    page.keyboard.press("x")
    page.keyboard.press("f")
    until(lambda: frame(page)["robots"][0]["push"] == 0 and frame(page)["command"][4] == 0, "let go, standing")
    page.click("#reset")
    assert page.faults == [], page.faults
    page.context.close()


def check_links(browser, server, test):
    """A moment of two robots on a server of one, of another version, and cut short: the page says so and is live. One
    that fits is shown on another server, too."""
    page = open_page(browser, server.url)
    simulate(page, 0.3)
    moment = lambda p: (p.click("#link"), p.input_value("#link-text").split("#")[1])[1]
    two = moment(page)
    page.context.close()
    # byte 4 of a frame is its version: characters 5 and 6 of the text
    other_version = two[:len("moment=") + 5] + "zz" + two[len("moment=") + 7:]
    with serving(test.silc, test.source, "policies/g1_loco_silc_compliance.onnx") as one:
        unread = "this link was made by another version of silc view, or is not whole; you see what is live"
        for link, words in ((two, "that moment is of 2 robots, and this server has 1; you see what is live"),
                            (other_version, unread), (two[:400], unread), ("moment=%25", unread)):
            page = open_page(browser, one.url + "#" + link)
            assert notices(page) == [words], notices(page)
            assert page.evaluate("silcView.viewer.recorder.live") and len(frame(page)["robots"]) == 1
            assert "#" not in page.evaluate("location.href"), page.url
            page.focus("#canvas")
            page.keyboard.press(" ")
            until(lambda: frame(page)["paused"], "Space pauses")
            page.keyboard.press(" ")
            until(lambda: not frame(page)["paused"], "and goes on")
            assert page.faults == [], page.faults
            page.context.close()
        page = open_page(browser, one.url)
        simulate(page, 0.3)
        fits = moment(page)
        # the frame itself is in the address, and its time at byte 16
        then, = struct.unpack_from("<d", base64.urlsafe_b64decode(fits.removeprefix("moment=") + "=="), 16)
        page.context.close()
    with serving(test.silc, test.source, "policies/g1_loco_baseline.onnx") as another:
        page = open_page(browser, another.url + "#" + fits)
        assert frame(page)["time"] == then and not page.evaluate("silcView.viewer.recorder.live")
        # places in the first server's lists name nothing here
        until(lambda: page.text_content(".label") == "from another server", "whose policy this is, is not known")
        until(lambda: page.input_value("#policy-0") == "", "nor is it chosen in the list")
        page.focus("#canvas")
        page.keyboard.press("l")
        until(lambda: page.text_content(".label") == "g1_loco_baseline", "live again")
        until(lambda: page.input_value("#policy-0") == "0", "with its policy")
        assert page.faults == [], page.faults
        page.context.close()


def check_nonsense_from_a_page(browser, server, test):
    """A page that sends rubbish is answered and closed; the robots go on, and so does another page."""
    good, bad = open_page(browser, server.url), open_page(browser, server.url, watches=True)
    said = bad.evaluate("""async () => { const { VERSION } = await import('/page/protocol.js');
        return new Promise((resolve) => {
        const socket = new WebSocket(`ws://${location.host}/ws`); let words = [];
        socket.onmessage = (e) => { if (typeof e.data === 'string') words.push(e.data); };
        socket.onopen = () => socket.send(new Uint8Array([VERSION, 0, 99, 0, 1, 2, 3]));
        socket.onclose = () => resolve(words.join(' ')); }); }""")
    assert "error" in said and "unknown type 99" in said, said
    simulate(good, 0.5)
    for page in (good, bad):
        page.context.close()


def check_malformed_frames(browser, server, test):
    """Fuzzed bytes both ways: frames that a page cannot read do no harm to it, messages that the server cannot read end
    that socket and nothing else."""
    page = open_page(browser, server.url)
    simulate(page, 0.3)
    counts = page.evaluate("""async () => { const viewer = silcView.viewer, whole = viewer.newest.buffer;
        let seed = 12345;  // a failure can be run again
        const random = (n) => { seed = (1103515245 * seed + 12345) % 2147483648; return Math.floor(seed / 2147483648 * n); };
        const counts = { refused: 0, taken: 0, drawn: 0, others: 0 };
        // as when a picture is due, the page's own guard included
        const animation = window.requestAnimationFrame;
        window.requestAnimationFrame = () => 0;
        const picture = () => { viewer.robots.pace.rested = 0; viewer.drawn = null; viewer.tick(performance.now()); return viewer.drawn !== null; };
        window.fuzzed = new Set();
        // whole frames of another number of robots
        const one = (whole.byteLength - 72) / 2, robots = new Uint8Array(whole);
        for (const count of [0, 1, 3]) {
            const bytes = new Uint8Array(72 + count * one);
            bytes.set(robots.slice(0, 72));
            for (let i = 0; i < count; ++i) bytes.set(robots.slice(72, 72 + one), 72 + i * one);
            bytes[6] = count;
            viewer.receive(bytes.buffer);
            fuzzed.add(viewer.newest.frame);
            if (picture()) ++counts.others;
        }
        for (let trial = 0; trial < 400; ++trial) {
            let bytes = new Uint8Array(whole.slice(0));
            if (trial % 4 === 0) bytes = bytes.slice(0, random(bytes.length));
            // counts and the version in the header, statuses and numbers after it
            else for (let k = 0; k < 1 + random(6); ++k) bytes[random(trial % 2 ? 48 : bytes.length)] = random(256);
            const before = viewer.newest;
            viewer.receive(bytes.buffer);
            fuzzed.add(viewer.newest.frame);
            if (viewer.newest === before) ++counts.refused;
            // drawing in software takes long: some of them
            else if (++counts.taken % 8 === 0 && picture()) ++counts.drawn;
        }
        window.requestAnimationFrame = animation;
        return counts; }""")
    print(f"   of 400 fuzzed frames {counts['refused']} were refused, {counts['taken']} taken, {counts['drawn']} drawn")
    assert counts["refused"] > 100 and counts["drawn"] > 10 and counts["others"] == 0, counts
    until(lambda: page.evaluate("silcView.frame() && !fuzzed.has(silcView.frame())"), "a good frame is drawn again")
    until(lambda: page.text_content("#connection") == "connected", "it says so again once frames are good")
    simulate(page, 0.3)
    # the other way: a socket of its own for each message
    answers = page.evaluate("""async () => { const { VERSION } = await import('/page/protocol.js');
        const send = (bytes) => new Promise((resolve) => { const socket = new WebSocket(`ws://${location.host}/ws`); let words = '';
            socket.onmessage = (e) => { if (typeof e.data === 'string') words += e.data; };
            socket.onopen = () => socket.send(bytes);
            socket.onclose = () => resolve(words); });
        const messages = ['a text', new Uint8Array(0), new Uint8Array(300)];
        for (let k = 0; k < 20; ++k) { const bytes = crypto.getRandomValues(new Uint8Array(5 + k));
            bytes[0] = VERSION; bytes[1] = 0; bytes[2] = 40 + k; messages.push(bytes); }
        return Promise.all(messages.map(send)); }""")
    assert len(answers) == 23 and all("error" in a for a in answers), answers
    simulate(page, 0.3)
    assert page.faults == [], page.faults
    page.context.close()


def check_fuzzed_inputs(browser, test):
    """Valid messages with some bytes changed, from a page that has the hand: each is taken or answered in words, and the
    robots go on."""
    with serving(test.silc, test.source, "policies/g1_loco_silc_compliance.onnx") as server:
        page = open_page(browser, server.url)
        simulate(page, 0.3)
        page.click("#hand")
        until(lambda: "Nobody" in page.text_content("#hand-text"), "the hand is free for others")
        counts = page.evaluate("""async () => { const { input } = await import('/page/protocol.js');
            let seed = 4711;  // a failure can be run again
            const random = (n) => { seed = (1103515245 * seed + 12345) % 2147483648; return Math.floor(seed / 2147483648 * n); };
            const valid = () => [input.ack(1), input.hand(true), input.grab(0, 20, [0, 0, 0.1]), input.pull([0.1, 0.2, 0.9]), input.release(),
                input.command([0.1, 0, 0, 0.75, 1]), input.pause(false), input.speed(0.5), input.reset(), input.push(1), input.policy(0, 1),
                input.budget(0, 1), input.gravity(2), input.samePush(true), input.spring(300), input.told(0, [300, 200, 100]), input.shown(1, 0.02)];
            // on a socket of its own, which gets the free hand; the last message is refused in any case
            const send = (bytes) => new Promise((resolve) => { const socket = new WebSocket(`ws://${location.host}/ws`); let words = '', hand = '';
                socket.onmessage = (e) => { if (typeof e.data !== 'string') return;
                    const said = JSON.parse(e.data);
                    if (said.error) words = said.error;
                    if (said.hand && !hand) { hand = said.hand; socket.send(bytes); socket.send(new Uint8Array([2, 0, 99, 0])); } };
                socket.onclose = () => resolve({ words, hand }); });
            const counts = { refused: 0, taken: 0, silent: 0, hands: 0 };
            for (let trial = 0; trial < 200; ++trial) {
                const all = valid();
                let bytes = new Uint8Array(all[trial % all.length].slice(0));
                const kind = random(4);
                if (kind === 0) bytes = bytes.slice(0, random(bytes.length));
                else if (kind === 1) { const longer = new Uint8Array(bytes.length + 1 + random(90)); longer.set(bytes); bytes = longer; }
                else for (let k = 0; k < 1 + random(3); ++k) bytes[4 + random(Math.max(1, bytes.length - 4))] = random(256);
                const { words, hand } = await send(bytes);
                if (hand === 'yours') ++counts.hands;
                if (words === '') ++counts.silent;
                else if (words.includes('unknown type 99')) ++counts.taken;
                else ++counts.refused;
            }
            return counts; }""")
        print(f"   of 200 changed messages {counts['refused']} were refused in words, {counts['taken']} taken")
        assert counts["silent"] == 0 and counts["refused"] > 60 and counts["taken"] > 20 and counts["hands"] > 150, counts
        # whatever they did, it can be undone
        until(lambda: "Nobody" in page.text_content("#hand-text"), "the hand is free")
        page.click("#hand")
        until(lambda: "You have" in page.text_content("#hand-text"), "taken")
        page.evaluate("""async () => { const { input } = await import('/page/protocol.js');
            for (const bytes of [input.pause(false), input.speed(1), input.policy(0, 0), input.reset()]) silcView.viewer.act(bytes); }""")
        until(lambda: not frame(page)["paused"] and frame(page)["speed"] == 1, "as it was")
        simulate(page, 0.5)
        assert page.faults == [], page.faults
        page.context.close()


def check_fingers(browser, server, test):
    """A finger on a hand pulls it; beside the robots it turns the camera, and two zoom."""
    page = open_page(browser, server.url, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.click("#reset")
    simulate(page, 1)
    touch = page.context.new_cdp_session(page)
    def fingers(kind, *points):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [
            {"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points)]})
    with paused(page):  # the hand is where it was seen when the finger comes
        camera_rests(page)
        next_pictures(page)
        at = on_screen(page, 0, frame(page)["robots"][0]["points"][1]["p"])
        fingers("touchStart", (at["x"], at["y"]))
        until(lambda: frame(page)["robots"][0]["push"] == 1, "the hand is held by a finger")
    fingers("touchMove", (at["x"], at["y"] - 25))
    until(lambda: frame(page)["robots"][0]["f"][2] > 2, "and pulled up")
    fingers("touchEnd")
    until(lambda: frame(page)["robots"][0]["push"] == 0, "let go")
    camera = lambda: page.evaluate("[silcView.viewer.orbit.azimuth, silcView.viewer.orbit.distance]")
    turned, far = camera()
    fingers("touchStart", (20, 40))
    fingers("touchMove", (60, 40))
    fingers("touchEnd")
    until(lambda: abs(camera()[0] - turned) > 0.1, "the camera turns")
    fingers("touchStart", (20, 30), (60, 30))
    fingers("touchMove", (20, 30), (120, 30))
    fingers("touchEnd")
    until(lambda: camera()[1] < 0.8 * far, "and comes nearer")
    assert page.faults == [], page.faults
    page.context.close()


def check_reconnects(browser, test):
    with serving(test.silc, test.source) as server:
        page = open_page(browser, server.url)
        simulate(page, 0.5)
        port = server.port
    until(lambda: "away" in page.text_content("#connection"), "the page says that the server is away")
    with serving(test.silc, test.source, "policies/g1_loco_baseline.onnx", port=port):
        until(lambda: page.text_content("#connection") == "connected", "connected again")
        until(lambda: len(frame(page)["robots"]) == 1, "the new server's one robot")
        simulate(page, 0.5)
    page.context.close()


def check_export_plays_offline(browser, test):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "recording.html")
        subprocess.run([test.silc, "view", "--export", path, "--seconds", "3", "policies/g1_loco_silc_compliance.onnx"],
                       cwd=test.source, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        page = open_page(browser, "file://" + path, watches=True)
        # 40 N on the left hand from second 1 on: it is seen, and the recording begins again after its end
        until(lambda: (r := frame(page)["robots"][0])["push"] and r["f"][2] < -30 and r["moved"][2] < 0,
              "the recorded push, and that the hand goes with it")
        until(lambda: frame(page)["time"] < 0.9, "the beginning again")
        assert page.is_hidden("#push-0") and page.is_visible("#scrub")
        assert page.is_disabled("#policy-0") and page.is_disabled("#budget-0"), "there is nothing to choose"
        assert page.faults == [], page.faults
        page.context.close()


def check_states_are_served(browser, test):
    """`silc view --states` without --export: the recording plays, pauses, and goes back and forth."""
    policy = "policies/g1_loco_silc_compliance.onnx"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "states.npz")
        with serving(test.silc, test.source, policy) as server:
            page = open_page(browser, server.url)
            simulate(page, 1.5)
            with page.expect_download() as download:
                page.click("#save")
            download.value.save_as(path)
            page.context.close()
        keep_rows(path, 40)
        with serving(test.silc, test.source, policy, "--states", path) as server:
            page = open_page(browser, server.url, watches=True)
            until(lambda: frame(page)["time"] > 0.5, "it plays")
            until(lambda: frame(page)["time"] < 0.3, "and begins again after its end")
            assert page.is_hidden("#push-0") and page.is_visible("#scrub")
            page.focus("#canvas")
            page.keyboard.press(" ")
            until(lambda: page.text_content("#play").startswith("play"), "paused")
            stands = frame(page)["time"]
            time.sleep(0.4)
            assert frame(page)["time"] == stands, "it stands while it is paused"
            page.evaluate("document.getElementById('scrub').value = -0.5;"
                          "document.getElementById('scrub').dispatchEvent(new Event('input'))")
            until(lambda: abs(frame(page)["time"] - 0.26) < 0.03, "half a second before the end")
            page.click("#play")
            until(lambda: frame(page)["time"] > 0.5, "it plays on")
            # a log may be longer than the 30 s that a live page keeps
            oldest = page.evaluate("""() => { const r = silcView.viewer.recorder, last = r.frames[r.frames.length - 1];
                r.add(600, last.buffer); return r.oldest; }""")
            assert oldest == 0, oldest
            assert page.faults == [], page.faults
            page.context.close()


def check_run_changes_over(browser, test):
    """A training that has had no checkpoint yet is waited for. It writes its policy anew: the page says so, and the robot has
    it."""
    with tempfile.TemporaryDirectory() as run:
        # two policies that are the same but for one wrist: the second's action loop is unstable, by its making
        first, second = (write_policy(test, kind, run) for kind in ("commanded", "unstable"))
        pathlib.Path(run, "config.yaml").touch()
        def checkpoint(line):
            assert line == f"waiting for a first checkpoint: {run}/policy.onnx; Ctrl-C ends it\n", line
            os.rename(first, run + "/policy.onnx")
        with serving(test.silc, test.source, run, on_first_line=checkpoint) as server:
            page = open_page(browser, server.url)
            radius = lambda: frame(page)["robots"][0]["radius"] or 0
            until(lambda: 0 < radius() < 1, "the first policy's action loop")
            os.utime(second)
            os.rename(second, run + "/policy.onnx")
            until(lambda: any("newer policy" in text for text in notices(page)), "the page is told")
            until(lambda: abs(radius() - 1.1) < 0.02, "the second policy's action loop")
            assert page.faults == [], page.faults
            page.context.close()


def socket_ends(page, address):
    """How a WebSocket that this page opens begins: 'open' or 'refused'."""
    return page.evaluate("""(address) => new Promise((done) => {
        const socket = new WebSocket(address);
        socket.onopen = () => { done('open'); socket.close(); };
        socket.onerror = () => done('refused');
    })""", address)


def check_token(browser, test):
    with serving(test.silc, test.source, "--host", "0.0.0.0", "--token", "random",
                 "policies/g1_loco_baseline.onnx") as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert "token=" in url
        page = browser.new_page()
        page.set_default_timeout(1000 * GENEROUS)
        assert page.goto(url.split("?")[0]).status == 403
        assert page.goto(url.split("?")[0] + "?token=guess").status == 403
        page.close()
        page = open_page(browser, url)
        socket, query = url.replace("http", "ws").split("?")
        for asked, ends in (("", "refused"), ("?token=guess", "refused"), ("?" + query, "open")):
            assert socket_ends(page, socket + "ws" + asked) == ends, (asked, ends)
        page.context.close()


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """A page that is not silc's."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<p>elsewhere</p>")

    def log_message(self, *_):
        pass


def check_origin(browser, server, test):
    """A page of another server on this machine, which the browser itself lets through, is refused; the server's own page
    is not. The other server is a real one: a page that the browser only pretends to have fetched may not reach the
    loopback anyway."""
    socket = server.url.replace("http", "ws").rstrip("/") + "/ws"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        context = browser.new_context()
        context.set_default_timeout(1000 * GENEROUS)
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{other.server_address[1]}/")
        assert page.text_content("p") == "elsewhere"
        assert socket_ends(page, socket) == "refused"
        page.goto(server.url)
        assert socket_ends(page, socket) == "open"
        context.close()
        other.shutdown()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("silc")
    parser.add_argument("source")
    parser.add_argument("--policies", required=True,
                        help="program that writes policies of a kind: write_test_policy")
    parser.add_argument("--pictures", help="folder for screenshots")
    parser.add_argument("--only", help="checks by their names, as in table,colours")
    test = parser.parse_args()
    test.silc, test.policies = (str(pathlib.Path(p).resolve()) for p in (test.silc, test.policies))
    executable = find_browser()
    started = time.monotonic()
    # the recorder first: there is little yet that `silc observe --states` would have to look at
    shared = [check_recorder, check_loads_and_shows, check_two_browsers,
              check_nonsense_from_a_page, check_malformed_frames, check_quick_screen, check_links, check_origin,
              check_state_to_pixel, check_curves, check_pace, check_camera, check_shapes, check_pictures, check_mouse, check_fingers,
              check_pushes, check_keyboard, check_changes]
    # with one robot of which all is known, and one whose action loop is unstable
    known = [check_table, check_ellipsoids, check_arrows, check_predicted_line]
    dragged = [check_drag_agrees_with_shake]
    alone = [check_readme_picture, check_fuzzed_inputs, check_colours, check_shadows, check_reconnects, check_token,
             check_export_plays_offline, check_states_are_served, check_run_changes_over, check_told_budget,
             check_other_robot]
    name_of = lambda check: check.__name__.removeprefix("check_")
    chosen = lambda check: not test.only or name_of(check) in test.only.split(",")
    tries, held = {}, set()  # of the checks, by name

    browser = None

    def attempt(check, *arguments):
        """Whether it held. A machine that holds up a picture or a click for seconds is no finding: what fails has a second
        try, and the log keeps why."""
        nonlocal browser
        name, begin = name_of(check), time.monotonic()
        tries[name] = tries.get(name, 0) + 1
        try:
            if not browser or not browser.is_connected():
                browser = test.launch()
            check(browser, *arguments, test)
            held.add(name)
            print(f"ok {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        except Exception as error:  # the others are worth knowing, too
            print(f"{'FAILED' if tries[name] == TRIES else 'once more'} {name}: {type(error).__name__}: {error}", flush=True)
            for context in browser.contexts if browser else []:
                with contextlib.suppress(Exception):  # of a browser that has ended
                    context.close()
        return name in held

    def run_together(checks, *policies):
        """All on one server, but for what comes after a failure: that may have left it paused, or in slow motion."""
        left = [check for check in checks if chosen(check) for _ in range(TRIES)]
        while left:
            with serving(test.silc, test.source, *policies) as server:
                while left:
                    check = left.pop(0)
                    if not attempt(check, server):
                        break
                    left = [other for other in left if other != check]

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        test.folder, test.shakes = folder, {}
        test.regulator, test.unstable = (write_policy(test, kind, folder) for kind in ("commanded", "unstable"))
        # drawn by the processor, also where there is a GPU: the checks are about that
        test.launch = lambda: playwright.chromium.launch(executable_path=executable, timeout=1000 * GENEROUS, args=[
            "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"])
        run_together(shared)
        run_together(known, test.regulator, test.unstable)
        if any(map(chosen, dragged)):
            run_together(dragged, dragged_policy(test), test.unstable)
        # these have servers of their own, and the processor to themselves
        for check in filter(chosen, alone):
            any(attempt(check) for _ in range(TRIES))
        if browser:
            with contextlib.suppress(Exception):
                browser.close()
    again = [name for name, count in tries.items() if count > 1]
    print(f"{len(held)} of {len(tries)} checks hold; tried again: {', '.join(again) or 'none'}; "
          f"{time.monotonic() - started:.0f} s in all")
    return 0 if len(held) == len(tries) else 1


if __name__ == "__main__":
    sys.exit(main())
