# SPDX-License-Identifier: Apache-2.0
"""What the viewer's checks in a browser share: the server, a page, what is on it."""
import contextlib
import io
import re
import signal
import struct
import subprocess
import time
import zipfile
import zlib

GENEROUS = 180  # [s] that anything may take: a busy machine that draws by the processor is slow, which is no finding


class Server:
    """silc view as a user starts it."""

    def __init__(self, silc, source, *arguments, port=0, on_first_line=None):
        self.process = subprocess.Popen([silc, "view", "--port", str(port), *arguments], cwd=source,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            line = self.process.stdout.readline()
            if on_first_line:  # there are words before the address
                on_first_line(line)
                line = self.process.stdout.readline()
            match = re.match(r"open (http://\S+:(\d+)/\S*)", line)
            assert match, f"silc view said: {line}"
        except BaseException:
            self.process.kill()
            print(self.process.communicate()[0], end="")
            raise
        self.url, self.port = match.group(1), int(match.group(2))

    def stop(self):
        """Ctrl-C; it ends by itself, and well."""
        self.process.send_signal(signal.SIGINT)
        rest, _ = self.process.communicate(timeout=GENEROUS)
        assert self.process.returncode == 0, f"exit {self.process.returncode}: {rest}"
        assert rest.strip().endswith("ended"), rest


@contextlib.contextmanager
def serving(silc, source, *arguments, **options):
    server = Server(silc, source, *arguments, **options)
    try:
        yield server
        server.stop()
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


def frame(page):
    return page.evaluate("""() => { const f = window.silcView && silcView.frame(); return f && {
        time: f.time, paused: f.paused, command: f.command, gravity: f.gravity, speed: f.speed,
        same: f.samePush,
        robots: f.robots.map((r) => ({push: r.push, f: r.f, moved: r.moved, predicted: r.predicted, p: r.p,
            policy: r.policy, budget: r.budget, told: r.told.value, status: r.status, sigma: r.reading.sigma, radius: r.reading.radius,
            points: r.points.map((q) => ({p: q.p, felt: q.felt, worst: q.worst}))}))}; }""")


def comes(condition, seconds):
    """What the condition is once it holds; None where it does not within that time. For what may be missed on a busy
    machine, and is then done again."""
    end = time.monotonic() + seconds
    while True:
        if value := condition():
            return value
        if time.monotonic() > end:
            return None
        time.sleep(0.05)


def until(condition, what, seconds=GENEROUS):
    """What the condition is once it holds. `what` is said where it never does; a function says it only then."""
    value = comes(condition, seconds)
    if not value:
        raise AssertionError(f"did not happen within {seconds} s: {what() if callable(what) else what}")
    return value


def simulate(page, seconds):
    """Waits until the robots have lived that long: software rendering may slow them down."""
    start = frame(page)["time"]
    until(lambda: frame(page)["time"] > start + seconds, f"{seconds} s simulated", GENEROUS + 20 * seconds)


def camera_rests(page, within=1e-3):
    """Waits until the camera is where it follows the robots to [m]: it does so softly, also after they have been paused."""
    until(lambda: page.evaluate("""(within) => { const { robots, orbit, drawn } = silcView.viewer;
        return orbit.centre.distanceTo(robots.centre(drawn)) < within; }""", within), "the camera has come to rest")


# As many pixels as there may be, however slow the machine is, and no words over the robots: two pictures of the same moment
# are the same. Words stay readable by text_content().
STEADY = """() => { const { pace } = silcView.viewer.robots; pace.share = 1; pace.decide = () => {};
    for (const id of ['labels', 'notices', 'banner', 'legend']) document.getElementById(id).style.visibility = 'hidden'; }"""


def take_hand(page):
    """Waits until the page has its hand on the robots: the one before it may not have left the server yet."""
    def has():
        hand = page.evaluate("silcView.viewer.controls.hand")
        if hand == "free":
            page.evaluate("""async () => { const { input } = await import('view/protocol.js');
                silcView.viewer.connection.send(input.hand(true)); }""")
        return hand == "yours"
    until(has, "this page has the hand")


def open_page(browser, url, watches=False, **options):
    """A page with a picture of the robots. Unless it only `watches`, it has its hand on them."""
    options.setdefault("viewport", {"width": 1000, "height": 600})
    context = browser.new_context(**options)
    context.set_default_timeout(1000 * GENEROUS)
    page = context.new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("requestfailed", lambda request: page.faults.append("failed: " + request.url))
    page.on("request", lambda request: page.faults.append("outside: " + request.url)
            if not request.url.startswith((re.split("[?#]", url)[0], "data:", "blob:", "ws://")) else None)
    page.add_init_script(KEEP_NOTICES)
    page.goto(url)
    until(lambda: frame(page), "the first frame")
    if not watches:
        take_hand(page)
    return page


# a notice goes after 8 s, which a busy machine may need until somebody looks
KEEP_NOTICES = """window.noticed = []; addEventListener('DOMContentLoaded', () => { const place = document.getElementById('notices');
    if (place) new MutationObserver((changes) => changes.forEach((c) => c.addedNodes.forEach((n) => noticed.push(n.textContent))))
        .observe(place, { childList: true }); });"""


def notices(page):
    """What the page has said so far, each sentence once; but for robots that fell, which is up to their policies."""
    return page.evaluate("[...new Set(noticed)].filter((text) => !text.endsWith('it stands up again'))")


def pixels(page, x, y, radius):
    """Colours around a point of the page, as the screen has them."""
    box = {"x": max(0, x - radius), "y": max(0, y - radius), "width": 2 * radius, "height": 2 * radius}
    data = page.screenshot(clip=box, type="png")
    # a PNG without any library: 8 bits, RGB or RGBA, filters undone row by row
    stream, header, packed = io.BytesIO(data[8:]), None, b""
    while chunk := stream.read(8):
        size, kind = struct.unpack(">I4s", chunk)
        body = stream.read(size)
        stream.read(4)
        if kind == b"IHDR":
            header = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            packed += body
    width, height, _, color = header
    step = {2: 3, 6: 4}[color]
    raw, rows, last = zlib.decompress(packed), [], bytearray(width * step)
    for r in range(height):
        at = r * (width * step + 1)
        kind, line = raw[at], bytearray(raw[at + 1:at + 1 + width * step])
        for i in range(width * step):
            a = line[i - step] if i >= step else 0
            b, c = last[i], last[i - step] if i >= step else 0
            if kind == 1:
                line[i] = (line[i] + a) & 255
            elif kind == 2:
                line[i] = (line[i] + b) & 255
            elif kind == 3:
                line[i] = (line[i] + (a + b) // 2) & 255
            elif kind == 4:
                p = a + b - c
                pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
                line[i] = (line[i] + (a if pa <= pb and pa <= pc else b if pb <= pc else c)) & 255
        rows.append([tuple(line[i:i + 3]) for i in range(0, width * step, step)])
        last = line
    return [colour for row in rows for colour in row]


def keep_rows(path, rows):
    """The first rows of every array: observing 30 s takes half a minute."""
    with zipfile.ZipFile(path) as file:
        arrays = {name: file.read(name) for name in file.namelist()}
    assert set(arrays) == {"qpos.npy", "qvel.npy"}, arrays.keys()
    with zipfile.ZipFile(path, "w") as file:
        for name, data in arrays.items():
            begin = 10 + int.from_bytes(data[8:10], "little")
            count, width = map(int, re.search(rb"\((\d+), (\d+)\)", data[10:begin]).groups())
            assert 50 <= count <= 1500, f"{count} rows recorded"
            text = data[10:begin].replace(b"(%d," % count, b"(%d," % rows)
            text = text.rstrip() + b" " * (begin - 11 - len(text.rstrip())) + b"\n"
            file.writestr(name, data[:10] + text + data[begin:begin + 8 * width * rows])


def on_screen(page, robot, p):
    return page.evaluate("([robot, p]) => silcView.onScreen(robot, p)", [robot, p])
