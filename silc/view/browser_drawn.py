# SPDX-License-Identifier: Apache-2.0
"""What the page draws, held to the frames it was sent: lines, curves, colours, shadows, sizes.

Frames are read here byte by byte, by the tables of docs/view.md, and not by the page's own reader.
"""
import base64
import contextlib
import json
import math
import os
import struct
import subprocess
import tempfile

from browser_page import STEADY, camera_rests, frame, on_screen, open_page, pixels, serving, simulate, until

SHAKEN_BY = 2  # [N] a hand of 100 N/m moves 2 cm: far enough to be read, near enough to be linear
SILC = "policies/g1_loco_silc_compliance.onnx"


def write_policy(test, kind, folder):
    """A policy that is told its budget ('commanded') or whose action loop is unstable ('unstable'): no shipped one has to
    be either. One of a robot without hands ('handless'). All stand."""
    path = os.path.join(folder, kind + ".onnx")
    subprocess.run([test.policies, kind, path], cwd=test.source, check=True)
    return path


def shaken(test, policy):
    """`silc observe --shake left-hand` of a policy, once for all checks."""
    if policy not in test.shakes:
        out = os.path.join(test.folder, "shake.json")
        subprocess.run([test.silc, "observe", policy, "--shake", "left-hand", "--forces", str(SHAKEN_BY), "--json", out],
                       cwd=test.source, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(out) as file:
            test.shakes[policy] = json.load(file)["shake"]
    return test.shakes[policy]


def dragged_policy(test):
    """The shipped policy or, where that one does not come to rest under a steady pull as it is predicted to, a regulator
    that does. Pages are held to it, not policies."""
    for policy in (SILC, test.regulator):
        shake = shaken(test, policy)
        # moved each way for a force each way [m/N]
        measured, model = ([v or math.nan for row in c["C_x"] for v in row] if c.get("C_x") else [math.nan]
                           for c in (shake["measured"][0], shake["model"][-1]))
        if size([a - b for a, b in zip(measured, model)]) < 0.1 * size(measured):
            return policy
        print(f"   {policy} moves under {SHAKEN_BY} N other than it is predicted to")
    raise AssertionError("nor does the regulator")


def read_frame(text):
    """A frame of the recorder, base64, by its tables."""
    data = base64.b64decode(text)
    robots, = struct.unpack_from("<H", data, 6)
    bodies, = struct.unpack_from("<I", data, 12)
    time_, sent, speed = struct.unpack_from("<ddf", data, 16)
    out = {"time": time_, "sent": sent, "speed": speed, "robots": []}
    for i in range(robots):
        at = 72 + i * (516 + 28 * bodies)
        f, p, moved, predicted = (struct.unpack_from("<3f", data, at + k) for k in (8, 20, 32, 44))
        _, sigma, worst, radius = struct.unpack_from("<4f", data, at + 104)
        points = [struct.unpack_from("<f", data, at + 128 + 88 * k + 84)[0] for k in range(3)]
        # position, felt and budget of each point; position and force of each foot
        places = [[struct.unpack_from(f"<{n}f", data, at + 128 + 88 * k + o) for n, o in ((3, 0), (9, 12), (9, 48))] for k in range(3)]
        feet = [[struct.unpack_from("<3f", data, at + 56 + 24 * k + o) for o in (0, 12)] for k in range(2)]
        out["robots"].append({"status": data[at], "push": data[at + 2], "falls": data[at + 3], "f": f, "p": p, "moved": moved, "predicted": predicted,
                              "sigma": sigma, "worst": worst, "radius": radius, "points": points, "places": places, "feet": feet})
    return out


def recorded(page, seconds):
    """What came in the last seconds."""
    texts = page.evaluate("""(seconds) => { const r = silcView.viewer.recorder; return r.frames.filter(
        (f) => f.time > r.newest - seconds).map((f) => { let s = '';
            for (const b of new Uint8Array(f.buffer)) s += String.fromCharCode(b); return btoa(s); }); }""", seconds)
    return [read_frame(t) for t in texts]


def next_pictures(page, count=2):
    """Waits until so many more pictures of the robots have been drawn."""
    drawn = "silcView.viewer.robots.renderer.info.render.frame"
    start = page.evaluate(drawn)
    until(lambda: page.evaluate(drawn) >= start + count, f"{count} pictures")


@contextlib.contextmanager
def paused(page):
    """The robots stand still, and go on afterwards, whatever happens: other checks have the same server. By key, so that a
    mouse or a finger that has taken something stays where it is."""
    def toggle():
        page.focus("#canvas")
        page.keyboard.press(" ")
    toggle()
    until(lambda: frame(page)["paused"], "paused")
    try:
        yield
    finally:
        toggle()
        until(lambda: not frame(page)["paused"], "goes on")


@contextlib.contextmanager
def paused_when(page, condition, what):
    """Pauses at a moment at which the condition holds of what came last."""
    for _ in range(30):
        until(condition, what)
        with paused(page):
            if condition():
                yield
                return
        simulate(page, 0.3)
    raise AssertionError(f"never paused at such a moment: {what}")


def is_judged(page):
    """Whether all points of the first robot are judged, and the budgets of every robot are known: while they step or settle
    they may not be."""
    robots = recorded(page, 1)[-1]["robots"]
    budgets = [v for robot in robots for _, _, budget in robot["places"] for v in budget]
    return all(map(math.isfinite, [*robots[0]["points"], *budgets]))


def is_soft_as_shaken(page, test, within):
    """Whether 10 N up would move the first robot's left hand as `--shake` predicts: it may be on its way to rest."""
    predicted = shaken(test, test.regulator)["model"][-1]["C_x"][2][2]
    return abs(recorded(page, 1)[-1]["robots"][0]["places"][1][1][8] / predicted - 1) < within


WATCH_PEN = """(id) => { const canvas = document.getElementById(id), pen = canvas.getContext('2d');
    if (canvas.drawings) return;
    canvas.drawings = 0;
    let now = { texts: [], paths: [], dots: [], path: [] };
    const own = (name, f) => { const real = CanvasRenderingContext2D.prototype[name];
        pen[name] = (...a) => { f(...a); return real.apply(pen, a); }; };
    own('clearRect', () => { canvas.drawing = now; ++canvas.drawings; now = { texts: [], paths: [], dots: [], path: [] }; });
    own('strokeRect', (x, y, w, h) => { now.box = [x, y, w, h]; });
    own('beginPath', () => { now.path = []; });
    own('moveTo', (x, y) => now.path.push([x, y]));
    own('lineTo', (x, y) => now.path.push([x, y]));
    own('stroke', () => now.paths.push({ color: pen.strokeStyle, width: pen.lineWidth, points: now.path }));
    own('fillRect', (x, y, w, h) => now.dots.push([x + w / 2, y + h / 2, pen.fillStyle]));
    own('fillText', (text, x, y) => now.texts.push([text, x, y])); }"""


def drawing(page, id):
    """What the pen does on a canvas from one clearing to the next: the frame of the chart, its words, lines and dots."""
    page.evaluate(WATCH_PEN, id)
    start = page.evaluate("(id) => document.getElementById(id).drawings", id)
    until(lambda: page.evaluate("(id) => document.getElementById(id).drawings", id) >= start + 2, "a whole drawing")
    out = page.evaluate("""(id) => { const canvas = document.getElementById(id), d = canvas.drawing;
        const ratio = canvas.width / canvas.clientWidth, pen = canvas.getContext('2d');
        // what is on the canvas at the points of the lines
        const { data, width } = pen.getImageData(0, 0, canvas.width, canvas.height);
        for (const path of d.paths) path.seen = path.points.map(([x, y]) => { const at = 4 * (Math.round(y * ratio) * width + Math.round(x * ratio));
            return [...data.slice(at, at + 4)]; });
        return d; }""", id)
    assert out["box"], out
    return out


def colour_of(page, name):
    """A colour of the page's style as the pen says it, '#0067c0'."""
    return page.evaluate("(name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()", name)


def up_axis(chart):
    """From pixels to what the words at the chart's left say."""
    left = chart["box"][0]
    ticks = [(float(text), y) for text, x, y in chart["texts"] if x < left]
    (v0, y0), (v1, y1) = ticks[0], ticks[-1]
    assert v0 == 0 and v1 > 0, ticks
    return lambda y: v0 + (y - y0) * (v1 - v0) / (y1 - y0)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def size(v):
    return math.sqrt(dot(v, v))


def mean(vectors):
    return [sum(v) / len(vectors) for v in zip(*vectors)]


# ---- checks ----


def check_state_to_pixel(browser, server, test):
    """Only frames that were drawn are told of, once each, with the browser's own time of the picture."""
    page = open_page(browser, server.url + "#measure")
    page.evaluate("""async () => { const viewer = silcView.viewer, { VERSION } = await import('/page/protocol.js');
        window.seen = { drawn: {}, came: 0, told: [] };
        const render = viewer.robots.render, send = viewer.connection.send, receive = viewer.receive;
        viewer.robots.render = function (now) { seen.drawn[viewer.drawn.sequence] = performance.now(); render.call(this, now); };
        viewer.receive = function (buffer) { ++seen.came; receive.call(this, buffer); };
        // on a quick machine as on a slow one two of three frames are overtaken
        const { pace } = viewer.robots;
        pace.mayDraw = (now, fresh) => fresh && seen.came % 3 === 0;
        viewer.connection.send = function (bytes) { const view = new DataView(bytes);
            if (view.getUint8(2) === 17) seen.told.push(
                [view.getUint32(4, true), performance.now() - 1000 * view.getFloat32(8, true)]);
            send.call(this, bytes); }; }""")
    until(lambda: len(page.evaluate("seen.told")) > 8, "pictures are told of")
    seen = page.evaluate("seen")
    told = [sequence for sequence, _ in seen["told"]]
    began = {int(k): v for k, v in seen["drawn"].items()}
    first = min(began)  # told of before this check looked
    assert all(s in began for s in told if s > first), f"told of what was not drawn: {told}, drawn {sorted(began)}"
    assert told == sorted(set(told)), told
    # presented after it was drawn; the browser rounds its clock to 4 ms
    late = [at - began[s] for s, at in seen["told"] if s > first]
    assert min(late) > -4, late
    assert seen["came"] >= 3 * len(began), "most frames are overtaken and not drawn"
    print(f"   {seen['came']} frames came, {len(began)} were drawn, {len(told)} told of; "
          f"presented {sum(late) / len(late):.0f} ms after they were drawn")
    # nobody else is told of pictures
    other = open_page(browser, server.url, watches=True)
    assert other.evaluate("silcView.viewer.presented === undefined && !document.querySelector('.presented')")
    for p in (page, other):
        assert p.faults == [], p.faults
        p.context.close()


def check_predicted_line(browser, server, test):
    """The straight line through force against displacement: the slope that `silc observe --shake` predicts, as a person
    reads it off the chart's own numbers; and the last dot is the last frame. The second robot's action loop is unstable, so
    that nothing is predicted of it."""
    shake = shaken(test, test.regulator)
    page = open_page(browser, server.url)
    page.click("#reset")
    simulate(page, 4)
    page.select_option("#pull-axis", "0,0,1")
    page.evaluate("document.getElementById('pull-force').value = 4;"
                  "document.getElementById('pull-force').dispatchEvent(new Event('input'))")
    # what is predicted is that of the moment at which the pull begins
    soft = lambda: is_soft_as_shaken(page, test, 0.07)
    with paused_when(page, soft, "the left hand is as soft as by --shake"):
        page.keyboard.press("f")
        until(lambda: frame(page)["robots"][0]["push"] == 1, "the hand is held")
    until(lambda: abs(size(frame(page)["robots"][0]["f"]) - 4) < 0.3, "a pull of 4 N")
    simulate(page, 2)
    with paused(page):
        chart = drawing(page, "curve-force")
        last = recorded(page, 1)[-1]
        said = [page.text_content(f"#push-line-{i}") for i in (0, 1)]
    page.keyboard.press("f")
    until(lambda: frame(page)["robots"][0]["push"] == 0, "let go")

    left, _, width, _ = chart["box"]
    newtons = up_axis(chart)
    zero = next(x for text, x, _ in chart["texts"] if text == "0" and x > left)
    end = next(float(text.split()[0]) for text, _, _ in chart["texts"] if text.endswith(" cm"))
    metres = lambda x: 0.01 * end * (x - zero) / (left + width - zero)
    for i in (0, 1):
        robot, color = last["robots"][i], colour_of(page, f"--robot-{i}")
        along = [f / size(robot["f"]) for f in robot["f"]]
        # the newest dot: its colour, its place
        dots = [d for d in chart["dots"] if d[2] == color]
        x, y, _ = dots[-1]
        assert abs(metres(x) - dot(robot["moved"], along)) < 1e-4, (metres(x), robot["moved"])
        assert abs(newtons(y) - size(robot["f"])) < 0.05, (newtons(y), robot["f"])
        known = all(map(math.isfinite, robot["predicted"]))
        assert robot["push"] and known == (i == 0), robot
        lines = [p for p in chart["paths"] if p["color"] == color]
        assert len(lines) == known, f"robot {i}: {len(lines)} predicted lines"
        assert "moved" in said[i] and ("predicted" in said[i]) == known, said[i]
        if not known:
            continue
        (x0, y0), (x1, y1) = lines[0]["points"]
        assert abs(metres(x0)) < 1e-6 and abs(newtons(y0)) < 1e-6, "it begins at the origin"
        slope = newtons(y1) / metres(x1)  # [N/m]
        by_frame = size(robot["f"]) / dot(robot["predicted"], along)
        assert abs(slope / by_frame - 1) < 0.01, f"robot {i}: drawn {slope}, in the frame {by_frame}"
        model = shake["model"][-1]["C_x"]
        predicted = 1 / dot(along, [dot(row, along) for row in model])
        print(f"   the line's slope {slope:.1f} N/m, by --shake {predicted:.1f} N/m")
        assert abs(slope / predicted - 1) < 0.1, (slope, predicted)
    assert page.faults == [], page.faults
    page.context.close()


def check_table(browser, server, test):
    """What 10 N would move, in millimetres, as the frame has it; dashes where the action loop is unstable."""
    page = open_page(browser, server.url)
    page.click("#reset")
    simulate(page, 2)
    cells = lambda robot: page.evaluate("""(robot) => [...document.querySelectorAll('.robot')[robot].querySelectorAll('tbody tr')].map(
        (row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent))""", robot)
    number = lambda text: float(text.replace("−", "-"))
    ready = lambda: is_judged(page) and is_soft_as_shaken(page, test, 0.1)
    with paused_when(page, ready, "judged, and the left hand is as soft as by --shake"):
        next_pictures(page)
        assert page.text_content(".robot thead").startswith("mm per 10 N"), page.text_content(".robot thead")
        felt = [p["felt"] for p in frame(page)["robots"][0]["points"]]
        def agrees():
            return all(abs(number(text) - 1e4 * felt[p][4 * axis]) < 0.51 * (1 if "." not in text else 0.1)
                       for p, row in enumerate(cells(0)) for axis, text in enumerate(row[:3]))
        until(agrees, "the table says what the frame says")  # its words change ten times a second
        print(f"   mm per 10 N, left hand: {cells(0)[1][:3]}")
        # and what `silc observe --shake` predicts, which looks at another moment
        predicted = 1e4 * shaken(test, test.regulator)["model"][-1]["C_x"][2][2]
        assert abs(number(cells(0)[1][2]) / predicted - 1) < 0.15, (cells(0), predicted)
        until(lambda: page.text_content("#verdict-1").startswith("not judged: the action loop is unstable"),
              lambda: "the second is not judged: " + page.text_content("#verdict-1"))
        until(lambda: cells(1) == [["–", "–", "–", "not judged"]] * 3, lambda: f"dashes: {cells(1)}")
        # tiny numbers and those below zero; the robots' own come again afterwards
        strange = page.evaluate("""() => { const { controls, drawn, recorder } = silcView.viewer;
            const point = drawn.robots[0].points[0], kept = point.felt;
            point.felt = [7e-10, 0, 0, 0, -6e-8, 0, 0, 0, -5.8e-5];
            controls.show(drawn, recorder);
            const row = [...document.querySelectorAll('.robot tbody tr')[0].querySelectorAll('td')].map((cell) => cell.textContent);
            point.felt = kept;
            return row; }""")
        assert strange[:3] == ["0.0", "0.0", "−0.6"], strange
    assert page.faults == [], page.faults
    page.context.close()


def check_ellipsoids(browser, server, test):
    """Solid and wire stand at the points and are what a force moves them by: each point of the unit sphere goes to C f with
    |f| = 10 N, C out of the bytes of the frame, and 2 mm on, so that what is stiff is still seen."""
    page = open_page(browser, server.url)
    page.click("#reset")
    simulate(page, 2)
    with paused_when(page, lambda: is_judged(page), "judged"):
        next_pictures(page)
        robots = recorded(page, 1)[-1]["robots"]
        drawn = page.evaluate("silcView.viewer.ellipsoids.pairs.map((p) => [p.felt, p.budget].map((m) => m.visible && m.matrix.elements))")
        side = page.evaluate("silcView.viewer.robots.robots.map((r) => r.group.position.toArray())")
        assert len(drawn) == 3 * len(robots)
        for i, robot in enumerate(robots):
            for k, (p, *compliances) in enumerate(robot["places"]):
                for mesh, C in zip(drawn[3 * i + k], compliances):
                    assert (mesh is not False) == all(map(math.isfinite, C)), f"robot {i}, point {k}"
                    if mesh is False:
                        continue
                    # what would be longer than 0.8 m is drawn that long
                    scale = 10 * min(1, 0.8 / (10 * size(C)))
                    for row in range(3):
                        for column in range(3):
                            want = scale * C[3 * row + column] + (0.002 if row == column else 0)
                            assert abs(mesh[4 * column + row] - want) < 1e-6, f"robot {i}, point {k}: {mesh}, {C}"
                        assert abs(mesh[12 + row] - p[row] - side[i][row]) < 1e-5, f"robot {i}, point {k}: {mesh}, {p}"
        # the stable robot has all of them, the other one its budget's alone
        assert [[m is not False for m in pair] for pair in drawn] == [[True, True]] * 3 + [[False, True]] * 3
    assert page.faults == [], page.faults
    page.context.close()


def check_arrows(browser, server, test):
    """Arrows lie where forces act, point where they point and are as long as they are strong: 0.12 m for 10 N of a push,
    0.12 m for 100 N under a foot, no longer than 1.2 m. The floor carries the robots' weight."""
    page = open_page(browser, server.url)
    page.click("#reset")
    simulate(page, 2)
    weight = 9.81 * page.evaluate("silcView.viewer.robots.description.mass")
    def carried():
        """[1] of their weight, on average over a second: they sway a little."""
        forces = [sum(f[2] for _, f in robot["feet"]) for f in recorded(page, 1) for robot in f["robots"]]
        return sum(forces) / len(forces) / weight
    until(lambda: abs(carried() - 1) < 0.05, "the floor carries the robots")
    page.select_option("#pull-axis", "0,0,1")  # across the picture: all of the arrow is seen
    page.focus("#canvas")
    page.keyboard.press("f")
    until(lambda: abs(size(frame(page)["robots"][0]["f"]) - 10) < 1, "a pull of 10 N")
    page.evaluate(STEADY)
    with paused(page):
        next_pictures(page)
        robots = recorded(page, 1)[-1]["robots"]
        drawn = page.evaluate("""() => silcView.viewer.arrows.robots.map((r, i) => [r.push, ...r.feet].map((a) => {
            const up = a.group.up.clone().set(0, a.shaft.scale.y, 0).applyQuaternion(a.group.quaternion).toArray();
            const tail = a.group.position.clone().sub(silcView.viewer.robots.robots[i].group.position).toArray();
            return { visible: a.group.visible, tail, up }; }))""")
        for i, robot in enumerate(robots):
            assert robot["push"], "both robots are pulled"
            for arrow, (p, f), scale in zip(drawn[i], [(robot["p"], robot["f"]), *robot["feet"]], (0.012, 0.0012, 0.0012)):
                length = min(1.2, scale * size(f))
                assert arrow["visible"] == (length > 0.01), (i, arrow, f)
                if not arrow["visible"]:
                    continue
                assert size([a - b for a, b in zip(arrow["tail"], p)]) < 1e-5, (i, arrow, p)
                assert size([a - length * b / size(f) for a, b in zip(arrow["up"], f)]) < 1e-5, (i, arrow, f)
            # pink in the middle of the push's arrow, whatever is before it
            camera_rests(page)
            next_pictures(page)
            at = on_screen(page, i, [a + 0.5 * b for a, b in zip(drawn[i][0]["tail"], drawn[i][0]["up"])])
            pink = [c for c in pixels(page, at["x"], at["y"], 10) if c[0] > 150 and c[1] < 90 and 60 < c[2] < 190]
            assert len(pink) > 10, f"{len(pink)} pink pixels at robot {i}"
    page.keyboard.press("f")
    until(lambda: frame(page)["robots"][0]["push"] == 0, "let go")
    assert page.faults == [], page.faults
    page.context.close()


def held_to_frames(page, key):
    """Every value of the last ten seconds is on its curve, at its time, and nothing else is."""
    now = frame(page)["time"]
    frames = [f for f in recorded(page, 11) if now - 10 < f["time"] <= now]
    assert frames[-1]["time"] == now, "the last frame that came is on the screen"
    chart = drawing(page, "curve-" + key)
    left, top, width, height = chart["box"]
    value = up_axis(chart)
    pixel = abs(value(top) - value(top + 1))
    for i in range(len(frames[0]["robots"])):
        color = colour_of(page, f"--robot-{i}")
        curves = [p for p in chart["paths"] if p["color"] == color]
        assert len(curves) == 1, f"{key}: {len(curves)} curves of robot {i}"
        points = sorted(curves[0]["points"])
        expected = [(left + width * (1 - (now - f["time"]) / 10), f["robots"][i][key]) for f in frames]
        # a value alone between others that are not known is a dot
        known = [False, *(math.isfinite(v) for _, v in expected), False]
        alone = [p for k, p in enumerate(expected) if known[k + 1] and not known[k] and not known[k + 2]]
        dots = [d for d in chart["dots"] if d[2] == color]
        assert len(dots) == len(alone), f"{key}, robot {i}: {len(dots)} dots of {len(alone)} values alone"
        for (x, y, _), (x_want, v_want) in zip(sorted(dots), alone):
            assert abs(x - x_want) < 0.5 and abs(value(y) - v_want) < 0.5 * pixel + 1e-3 * abs(v_want), (x, y, x_want, v_want)
        expected = [(x, v) for x, v in expected if math.isfinite(v)]
        assert len(points) == len(expected), f"{key}, robot {i}: {len(points)} points of {len(expected)} values"
        for (x, y), (x_want, v_want) in zip(points, expected):
            assert abs(x - x_want) < 0.5 and abs(value(y) - v_want) < 0.5 * pixel + 1e-3 * abs(v_want), (
                f"{key}, robot {i}: drawn {value(y)} at {x}, the frame says {v_want} at {x_want}")
        if points:
            assert points[0][0] >= left - 0.5 and points[-1][0] <= left + width + 0.5
    return now, chart


def check_curves(browser, server, test):
    """σ, worst direction and spectral radius: what is drawn is what the frames say, over ten seconds, and it scrolls."""
    page = open_page(browser, server.url)
    page.click("#reset")
    simulate(page, 2)
    with paused(page):
        drawn = {}
        for key in ("sigma", "worst", "radius"):
            drawn[key] = held_to_frames(page, key)
        # twelve seconds more at once: frames of this server with later times and values that rise, with a gap
        page.evaluate("""() => { const viewer = silcView.viewer, last = viewer.newest.buffer, begin = viewer.newest.frame.time;
            const { connection } = viewer, { handlers } = connection, { frame } = handlers;
            // the server's own would set the clock back, and has sent none of these
            handlers.frame = (buffer) => connection.acknowledge(new DataView(buffer).getUint32(8, true));
            window.goOn = () => { handlers.frame = frame; };
            viewer.connection = { acknowledge: () => {} };
            const bodies = new DataView(last).getUint32(12, true);
            for (let k = 1; k <= 600; ++k) {
                const view = new DataView(last.slice(0));
                view.setFloat64(16, begin + 0.02 * k, true);
                for (let i = 0; i < 2; ++i) [108, 112, 116].forEach((offset, n) => view.setFloat32(
                    72 + i * (516 + 28 * bodies) + offset, k > 300 && k < 320 && k !== 310 ? NaN : 0.1 * (n + 1) + 0.002 * k + 0.3 * i, true));
                viewer.receive(view.buffer);
            }
            viewer.connection = connection; }""")
        try:
            until(lambda: frame(page)["time"] > drawn["radius"][0] + 11.99, "the last of them is drawn")
            for key in ("sigma", "worst", "radius"):
                now, chart = held_to_frames(page, key)
                assert chart["dots"], "there is a value alone"
                # and it is there to be seen: the colour of the line, where the line is
                color = colour_of(page, "--robot-0")
                curve = next(p for p in chart["paths"] if p["color"] == color)
                want = [int(color[k:k + 2], 16) for k in (1, 3, 5)]
                seen = [s for s in curve["seen"] if s[3] > 120 and max(abs(a - b) for a, b in zip(s, want)) < 60]
                assert len(seen) > 0.5 * len(curve["seen"]), f"{key}: its line is not seen"
                assert abs(now - drawn[key][0] - 12) < 0.1, (now, drawn[key][0])
            assert recorded(page, 30)[0]["time"] < now - 10, "something has scrolled out"
        finally:
            page.evaluate("goOn()")
    assert page.faults == [], page.faults
    page.context.close()


def picture_with(page, pair):
    """Draws the robots anew with one solid ellipsoid alone, opaque, or with none (-1); it is on the screen afterwards."""
    page.evaluate("""(pair) => new Promise((done) => { const viewer = silcView.viewer;
        viewer.ellipsoids.pairs.forEach((p, k) => { p.felt.material.opacity = k === pair ? 1 : 0; p.budget.material.opacity = 0; });
        requestAnimationFrame((now) => { viewer.draw(viewer.drawn, now); requestAnimationFrame(done); }); })""", pair)


def changed(before, after, by=12):
    """The pixels of the second picture that are not those of the first."""
    return [b for a, b in zip(before, after) if max(abs(x - y) for x, y in zip(a, b)) > by]


def ellipsoid_colours(page, wanted):
    """The colours of solid ellipsoids, (robot, point) each, in their middle: nothing is drawn before them. None where no
    ellipsoid is seen. The robots are paused, and the page is STEADY."""
    picture_with(page, -1)
    camera_rests(page)
    colours = []
    for robot, point in wanted:
        p = frame(page)["robots"][robot]["points"][point]["p"]
        looks = []
        for pair in (-1, 3 * robot + point):
            picture_with(page, pair)
            at = on_screen(page, robot, p)
            looks.append(pixels(page, at["x"], at["y"], 2))
        seen = changed(*looks, 3)  # a hand may be nearly as grey
        # the middle one of each channel
        colours.append([sorted(c[k] for c in looks[1])[len(looks[1]) // 2] for k in range(3)] if len(seen) >= 8 else None)
    return colours


def wait_for_hues(page, wanted, want):
    """Waits until each of the ellipsoids has that hue."""
    last = []
    def same():
        last[:] = ellipsoid_colours(page, wanted)
        return [hue(c) for c in last] == [want] * len(wanted)
    until(same, lambda: f"{want} at {wanted}: the last colours were {last}")


def hue(color):
    if color is None:
        return "not seen"
    r, g, b = color
    # by the share of the light, which is how far a side of the ellipsoid faces the sun: in light the grey is (107, 117, 128)
    # at most 1.7 times
    if max(color) - min(color) < 0.3 * max(color):
        return "grey"
    return "green" if g == max(color) else "orange" if r > g > b else f"neither: {color}"


def check_colours(browser, test):
    """Green where a budget holds, orange where it does not, grey where it is not judged: by pixels, in both schemes, under
    budgets that hold by far and fail by far. The second robot's action loop is unstable: there is no solid ellipsoid of
    it."""
    for mode, want in (("compliance,com=1000000,null_space=100000", "green"), ("compliance,com=1,null_space=0.05", "orange")):
        with serving(test.silc, test.source, test.regulator, test.unstable, "--mode", mode) as server:
            for scheme in ("light", "dark"):
                page = open_page(browser, server.url, color_scheme=scheme)
                simulate(page, 1)
                # 10 N hardly move the centre of mass: the most that the page has, seen from nearby
                page.focus("#force")
                page.keyboard.press("End")
                page.evaluate("silcView.viewer.orbit.distance = 2.2")
                assert page.evaluate("silcView.viewer.ellipsoids.force") == 100
                page.evaluate(STEADY)
                with paused_when(page, lambda: is_judged(page), "judged"):
                    next_pictures(page)
                    frames = recorded(page, 1)[-1]["robots"]
                    over = [w > 1 for w in frames[0]["points"]]
                    assert all(map(math.isfinite, frames[0]["points"])) and over == [want == "orange"] * 3, frames[0]["points"]
                    assert all(map(math.isnan, frames[1]["points"])), frames[1]["points"]
                    drawn = page.evaluate("silcView.viewer.ellipsoids.pairs.map((p) => [p.felt.visible, p.budget.visible])")
                    assert drawn == [[True, True]] * 3 + [[False, True]] * 3, drawn
                    wanted = [(0, 0), (0, 1)]
                    wait_for_hues(page, wanted, want)
                    # felt, and not judged
                    page.evaluate("""() => { const ellipsoids = silcView.viewer.ellipsoids, show = ellipsoids.show;
                        ellipsoids.show = function (frame, place) { frame.robots[0].points.forEach((p) => { p.worst = NaN; }); show.call(this, frame, place); }; }""")
                    wait_for_hues(page, wanted, "grey")
                    # in words, too, which are about σ: near 1 under a budget that holds everywhere by far
                    said = lambda robot: page.text_content(f"#verdict-{robot}")
                    until(lambda: ("does not hold" in said(0)) == (frames[0]["sigma"] > 1) and "budget" in said(0),
                          lambda: f"{said(0)}: {frames[0]}")
                    until(lambda: said(1).startswith("not judged: the action loop"), lambda: said(1))
                assert page.faults == [], page.faults
                page.context.close()


def check_shadows(browser, test):
    """The robot's shadow lies on the floor where shadows are on, and does not where the processor draws."""
    ratio = {}
    with serving(test.silc, test.source, SILC) as server:
        for name, address in (("off", server.url), ("on", server.url + "#shadows")):
            page = open_page(browser, address)
            assert page.evaluate("silcView.viewer.robots.software"), "this check is for a browser without a GPU"
            page.click("#reset")
            simulate(page, 0.4)
            page.evaluate(STEADY)
            with paused(page):
                page.evaluate("""() => { const v = silcView.viewer; v.orbit.elevation = 1.1; v.orbit.azimuth = 0.9; v.orbit.distance = 4; }""")
                picture_with(page, -1)
                camera_rests(page)
                next_pictures(page)
                base = frame(page)["robots"][0]["points"][0]["p"]
                # the sun stands at (2, −2.5, 5) from the robot: its chest's shadow falls that far to the other side
                reach = 1.0 / 5
                def floor(side):
                    at = on_screen(page, 0, [base[0] - side * 2 * reach, base[1] + side * 2.5 * reach, 0])
                    light = sorted(sum(c) for c in pixels(page, at["x"], at["y"], 6))
                    return light[len(light) // 2]
                ratio[name] = floor(1) / floor(-1)
            assert page.faults == [], page.faults
            page.context.close()
    print(f"   the floor's light behind the robot over that before it: {ratio['off']:.2f} without shadows, {ratio['on']:.2f} with")
    assert abs(ratio["off"] - 1) < 0.05, ratio
    assert ratio["on"] < 0.85, ratio


def check_pace(browser, server, test):
    """A machine on which pictures take long draws fewer pixels, where that helps, and all of them once it is quick again;
    without a GPU it rests as long as it drew. The times are made up here: how slow this machine is cannot be known."""
    page = open_page(browser, server.url)
    has = page.evaluate("""async () => { const { Pace } = await import('/page/pace.js'), out = {};
        for (const software of [true, false]) {
            const pace = new Pace(software), full = pace.ratio(1000, 1000, 1);
            let now = 1000;
            // `time` [ms] of a picture, by the share of its pixels
            const draw = (count, time) => { for (let k = 0; k < count; ++k) { const cost = time(pace.share); pace.drew(now, cost); now += cost; } };
            const seen = { full };
            draw(200, (share) => 200 * share);
            seen.slow = pace.ratio(1000, 1000, 1) / full;
            draw(400, (share) => 12 * share);
            seen.quick = pace.ratio(1000, 1000, 1) / full;
            draw(200, () => 100);
            seen.useless = pace.ratio(1000, 1000, 1) / full;
            pace.drew(now, 40);
            seen.rests = [30, 60, 90, 200].map((later) => [pace.mayDraw(now + later, true), pace.mayDraw(now + later, false)]);
            out[software ? 'software' : 'gpu'] = seen;
        }
        return out; }""")
    for kind, pixels_at_full in (("software", 400000), ("gpu", 1000000)):
        seen = has[kind]
        assert abs(1e6 * seen["full"] ** 2 / pixels_at_full - 1) < 1e-6, (kind, seen)
        # down to the fewest, 0.3 of the pixels, unless a picture is quick enough before
        assert 0.3 <= seen["slow"] ** 2 + 1e-9 < 0.45, (kind, seen)
        assert seen["quick"] == 1 and seen["useless"] == 1, (kind, seen)
    assert has["software"]["rests"] == [[False, False], [False, False], [True, False], [True, True]], has["software"]["rests"]
    assert all(a and b for a, b in has["gpu"]["rests"]), has["gpu"]["rests"]
    # and the picture follows
    sizes = page.evaluate("""() => { const r = silcView.viewer.robots, c = document.getElementById('canvas'), out = [];
        for (const share of [1, 0.3]) { r.pace.share = share; r.resize(); out.push([c.width, c.height, c.clientWidth, c.clientHeight]); }
        return out; }""")
    (w, h, *shown), (w_less, h_less, *shown_less) = sizes
    assert shown == shown_less and abs(w_less * h_less / (w * h) - 0.3) < 0.01, sizes
    assert page.faults == [], page.faults
    page.context.close()


def check_camera(browser, server, test):
    """The camera follows the robots as quickly where pictures are seldom as where they are not: a second after they were
    put elsewhere it is there."""
    page = open_page(browser, server.url, watches=True)
    left = page.evaluate("""async () => { const { OrbitCamera } = await import('view/camera.js'), THREE = await import('three');
        const far = new THREE.Vector3(1, 0, 0);
        return [60, 10, 2].map((pictures) => { const orbit = new OrbitCamera(new THREE.PerspectiveCamera());
            for (let k = 0; k < pictures; ++k) orbit.follow(far, 1 / pictures);
            return orbit.centre.distanceTo(far); }); }""")
    assert max(left) < 0.01 and max(left) - min(left) < 1e-9, left
    # and the page says how much time has passed
    left = page.evaluate("""() => { const { viewer } = silcView, { orbit, robots, drawn } = viewer, now = performance.now();
        viewer.draw(drawn, now);
        orbit.centre.x += 1;
        viewer.draw(drawn, now + 1000);
        return orbit.centre.distanceTo(robots.centre(drawn)); }""")
    assert left < 0.01, left
    assert page.faults == [], page.faults
    page.context.close()


def check_shapes(browser, server, test):
    """Every kind of shape that an MJCF has, in its place and size, closed and with its outside outside: the volume that its
    faces enclose and the box around it. No shipped robot has meshes, and others do."""
    page = open_page(browser, server.url, watches=True)
    a, b, c = 0.1, 0.2, 0.3
    kinds = {"sphere": (4 / 3 * math.pi * a ** 3, [a, a, a]), "capsule": (math.pi * a ** 2 * (2 * b + 4 / 3 * a), [a, a, a + b]),
             "cylinder": (2 * math.pi * a ** 2 * b, [a, a, b]), "box": (8 * a * b * c, [a, b, c]),
             "ellipsoid": (4 / 3 * math.pi * a * b * c, [a, b, c]), "mesh": (1 / 6, [0.5, 0.5, 0.5])}
    has = page.evaluate("""async ([kinds, size]) => { const { bodyGeometry } = await import('view/shapes.js'), THREE = await import('three');
        // a corner of a cube
        const meshes = [{ vertices: [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1], faces: [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3] }];
        return kinds.map((shape) => { const round = { thick: 32, thin: 32, fine: 32 };
            // a quarter turn about x: y becomes z, z becomes −y
            const geometry = bodyGeometry([{ shape, size, mesh: 0, pos: [1, 2, 3], quat: [Math.SQRT1_2, Math.SQRT1_2, 0, 0],
                rgba: [0.1, 0.2, 0.3, 1] }], meshes, round);
            const { position, normal, color } = geometry.attributes, faces = geometry.index.array;
            const at = (list, k) => new THREE.Vector3().fromArray(list.array, 3 * k), here = new THREE.Vector3(1, 2, 3);
            let volume = 0, inwards = 0;
            for (let k = 0; k < faces.length; k += 3) {
                const [p, q, r] = [0, 1, 2].map((n) => at(position, faces[k + n]).sub(here));
                const out = q.clone().sub(p).cross(r.clone().sub(p));
                volume += p.dot(out) / 6;
                if (out.length() > 1e-9) for (let n = 0; n < 3; ++n) if (at(normal, faces[k + n]).dot(out) < -1e-9) ++inwards;
            }
            const box = new THREE.Box3().setFromBufferAttribute(position);
            return { shape, volume, inwards, middle: box.getCenter(new THREE.Vector3()).toArray(), sides: box.getSize(new THREE.Vector3()).toArray(),
                color: [...color.array.slice(0, 3)] }; }); }""", [list(kinds), [a, b, c]])
    for one in has:
        volume, (x, y, z) = kinds[one["shape"]]
        assert 0.93 * volume < one["volume"] < 1.001 * volume, (one, volume)
        assert one["inwards"] == 0, one
        middle = [1.5, 1.5, 3.5] if one["shape"] == "mesh" else [1, 2, 3]
        assert size([p - q for p, q in zip(one["middle"], middle)]) < 1e-3, one
        assert all(abs(side / 2 - want) < 0.02 * want for side, want in zip(one["sides"], (x, z, y))), one
        assert size([p - q for p, q in zip(one["color"], (0.1, 0.2, 0.3))]) < 1e-6, one
    assert page.faults == [], page.faults
    page.context.close()


def luminance(color):
    part = [c / 255 / 12.92 if c / 255 <= 0.03928 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2]


def contrast(a, b):
    """WCAG 2's contrast ratio of two '#rrggbb'."""
    one, other = (luminance([int(c[k:k + 2], 16) for k in (1, 3, 5)]) for c in (a, b))
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


LAYOUT = """() => { const inside = (n) => { const b = n.getBoundingClientRect(); return b.left >= -1 && b.right <= innerWidth + 1; };
    const shown = (n) => n.offsetParent !== null && n.getBoundingClientRect().width > 0;
    const name = (n) => n.id || n.textContent.trim().slice(0, 30) || n.tagName;
    const all = (css) => [...document.querySelectorAll(css)].filter(shown);
    // every piece of text, by the boxes of its letters
    const texts = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) { const node = walk.currentNode, parent = node.parentElement;
        if (!node.textContent.trim() || !shown(parent) || parent.closest('#labels, select, script')) continue;
        const range = document.createRange(); range.selectNodeContents(node);
        texts.push({ text: node.textContent.trim().slice(0, 30), px: parseFloat(getComputedStyle(parent).fontSize),
            boxes: [...range.getClientRects()].map((b) => [b.left, b.right]) }); }
    const panel = document.getElementById('panel'), box = panel.getBoundingClientRect();
    const canvas = document.getElementById('canvas'), stage = document.getElementById('stage').getBoundingClientRect();
    return { page: document.documentElement.scrollWidth - innerWidth, panel: panel.scrollWidth - panel.clientWidth,
        outside: all('#panel *').filter((n) => !inside(n)).map(name),
        clipped: texts.filter((t) => t.boxes.some(([l, r]) => l < box.left - 1 || r > box.right + 1)
            && !t.boxes.some(([l, r]) => r <= box.left)).map((t) => t.text),
        smallest: Math.min(...texts.map((t) => t.px)), body: parseFloat(getComputedStyle(document.body).fontSize),
        low: all('button').map((n) => n.getBoundingClientRect().height).reduce((a, b) => Math.min(a, b), 1e9),
        unnamed: all('input, select, button').filter((n) =>
            !(n.textContent.trim() || n.closest('label') || n.getAttribute('aria-label'))).map(name),
        curves: ['sigma', 'worst', 'radius', 'force'].map((k) => { const c = document.getElementById('curve-' + k);
            return [c.width, c.clientWidth * devicePixelRatio, c.height, c.clientHeight * devicePixelRatio]; }),
        canvas: [canvas.width, canvas.height], stage: [stage.width, stage.height], software: silcView.viewer.robots.software }; }"""


def check_pictures(browser, server, test):
    """Phone, desktop and 4K, light and dark: nothing sticks out, text can be read; pictures are there to be looked at."""
    for name, width, height, scheme, ratio in (("desktop", 1280, 800, "light", 1), ("dark", 1280, 800, "dark", 1),
                                              ("phone", 390, 844, "light", 2), ("phone-dark", 390, 844, "dark", 2),
                                              ("wide", 3840, 2160, "light", 1), ("wide-dark", 3840, 2160, "dark", 1)):
        page = open_page(browser, server.url, viewport={"width": width, "height": height}, color_scheme=scheme,
                         device_scale_factor=ratio)
        simulate(page, 0.5)
        next_pictures(page)
        # the curves are as sharp as the screen, once they have been drawn at this size
        sharp = lambda has: all(abs(w - w_want) <= 1 and abs(h - h_want) <= 1 for w, w_want, h, h_want in has["curves"])
        has = until(lambda: (now := page.evaluate(LAYOUT)) and sharp(now) and now,
                    lambda: f"{name}: curves as sharp as the screen: {page.evaluate(LAYOUT)['curves']}")
        assert has["page"] <= 0 and has["panel"] <= 0, f"{name}: {has['page']}, {has['panel']} px too wide"
        assert has["outside"] == [] and has["clipped"] == [], f"{name}: {has['outside']} {has['clipped']}"
        assert has["unnamed"] == [], f"without a name for a screen reader: {has['unnamed']}"
        # text grows with the screen; on a phone nothing is smaller than what a browser calls small
        least, text = {390: (10, 15), 1280: (11, 15), 3840: (16, 21)}[width]
        assert has["smallest"] >= least and has["body"] >= text, f"{name}: text of {has['smallest']}, {has['body']} px"
        if width == 390:
            assert has["low"] >= 40, f"{name}: a button {has['low']} px high is hard to hit with a finger"
        # the robots are drawn in their own proportions; at full resolution where there is a GPU, at less where there is none
        buffer, stage = has["canvas"], has["stage"]
        assert abs(buffer[0] / buffer[1] / (stage[0] / stage[1]) - 1) < 0.01, f"{name}: {buffer} for {stage}"
        assert has["software"] and buffer[0] * buffer[1] <= 401000, f"{name}: {buffer} pixels in software"
        full = page.evaluate("""() => { const viewer = silcView.viewer, r = viewer.robots, c = document.getElementById('canvas');
            const pace = r.pace;
            r.pace = new pace.constructor(false);
            r.resize();
            const size = [c.width, c.height];
            r.pace = pace;
            viewer.draw(viewer.drawn, performance.now());  // another size empties the canvas
            return size; }""")
        assert all(abs(f - ratio * s) <= 2 for f, s in zip(full, stage)), f"{name}: {full} for {stage} at {ratio}"
        # light is light and dark is dark; words stand out from what they stand on (WCAG 2, AA)
        color = {k: colour_of(page, "--" + k) for k in ("back", "panel", "ink", "soft", "holds", "over", "unjudged", "warn",
                                                        "warn-back", "accent", "accent-ink")}
        sky = pixels(page, 8, 8, 4)[0]
        assert (luminance(sky) < 0.1) == (scheme == "dark"), f"{name}: {sky}"
        for words, ground in (("ink", "panel"), ("ink", "back"), ("soft", "panel"), ("holds", "panel"), ("over", "panel"),
                              ("unjudged", "panel"), ("warn", "warn-back"), ("accent-ink", "accent")):
            assert contrast(color[words], color[ground]) >= 4.5, f"{scheme}: {words} on {ground}"
        if test.pictures:
            page.screenshot(path=os.path.join(test.pictures, name + ".png"))
        page.context.close()


def check_readme_picture(browser, test):
    """docs/images/view.png: both robots pulled up at the left hand. Drawn with --pictures alone."""
    if not test.pictures:
        return
    with serving(test.silc, test.source) as server:
        page = open_page(browser, server.url + "#shadows", viewport={"width": 1200, "height": 660})
        # as sharp as with a GPU, however long it takes
        page.evaluate("() => { const { robots } = silcView.viewer; robots.pace.ratio = (w, h, screen) => screen; }")
        simulate(page, 3)
        page.evaluate("""() => { const orbit = silcView.viewer.orbit; orbit.azimuth = 0.6; orbit.elevation = 0.2;
            const force = document.getElementById('pull-force'); force.value = 7; force.dispatchEvent(new Event('input')); }""")
        page.select_option("#pull-axis", "0,0,1")
        page.focus("#canvas")
        page.keyboard.press("f")
        until(lambda: abs(size(frame(page)["robots"][0]["f"]) - 7) < 0.5, "a pull of 7 N")
        simulate(page, 3)
        until(lambda: "predicted" in page.text_content("#push-line-0") and not page.text_content("#banner"), "predicted, in real time")
        page.evaluate("document.activeElement.blur()")
        page.screenshot(path=os.path.join(test.pictures, "view.png"))
        page.context.close()
