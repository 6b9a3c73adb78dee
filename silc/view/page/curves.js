// SPDX-License-Identifier: Apache-2.0
// What the observer said over the last ten seconds, and force against displacement of the last push.

const WINDOW = 10, KEPT = 30;  // [s] shown, kept for scrubbing
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A canvas as sharp as the screen; returns its pen and size in CSS pixels.
function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = `${Math.max(11, 0.7 * parseFloat(getComputedStyle(document.documentElement).fontSize))}px system-ui, sans-serif`;
  return { pen, width, height };
}

// A number of one digit times a power of ten, at least `value`.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  for (const step of [1, 2, 3, 5, 10]) if (step * power >= value) return step * power;
  return value;
}

function axes(pen, left, top, width, height, low, high, ticks) {
  pen.strokeStyle = css('--line');
  pen.fillStyle = css('--soft');
  pen.lineWidth = 1;
  pen.strokeRect(left, top, width, height);
  pen.textAlign = 'right';
  pen.textBaseline = 'middle';
  for (const tick of ticks) {
    const y = top + height * (1 - (tick - low) / (high - low));
    pen.beginPath();
    pen.moveTo(left, y);
    pen.lineTo(left + width, y);
    pen.stroke();
    pen.fillText(String(+tick.toPrecision(2)), left - 4, y);
  }
}

export class Curves {
  constructor() {
    this.charts = ['sigma', 'worst', 'radius'].map((key) => ({ key, canvas: document.getElementById('curve-' + key) }));
    this.force = document.getElementById('curve-force');
    this.rows = [];    // {time, robots: [{sigma, worst, radius}]}
    this.pushes = [];  // per robot: {points: [[cm, N]], line: [cm, N] or null}
    this.drawn = 0;
    this.kept = KEPT;  // [s] a recording keeps all of its rows
  }

  add(frame) {
    const last = this.rows[this.rows.length - 1];
    if (last && frame.time < last.time) this.rows = [];  // a new server's clock
    if (last && frame.time === last.time) return;        // paused
    this.rows.push({ time: frame.time, robots: frame.robots.map((r) => r.reading) });
    while (this.rows[0].time < frame.time - this.kept) this.rows.shift();
    frame.robots.forEach((robot, i) => this.addPush(i, robot));
  }

  addPush(i, robot) {
    const push = this.pushes[i] || (this.pushes[i] = { points: [], line: null, on: false });
    if (!robot.push) { push.on = false; return; }
    if (!push.on) { push.points = []; push.line = null; push.on = true; }
    const force = Math.hypot(...robot.f);
    if (force > 0.05) {
      push.direction = robot.f.map((f) => f / force);
      const along = (v) => 100 * (v[0] * push.direction[0] + v[1] * push.direction[1] + v[2] * push.direction[2]);
      push.points.push([along(robot.moved), force]);
      if (robot.predicted.every(Number.isFinite)) push.line = [along(robot.predicted), force];
    } else if (push.direction) {
      const d = push.direction;
      push.points.push([100 * (robot.moved[0] * d[0] + robot.moved[1] * d[1] + robot.moved[2] * d[2]), 0]);
    }
    if (push.points.length > 1500) push.points.splice(0, 500);
  }

  // at most ten times a second: four canvases cost more than the eye gains
  draw(time, now) {
    if (now - this.drawn < 100) return;
    this.drawn = now;
    for (const chart of this.charts) this.drawSeries(chart, time);
    this.drawForce();
  }

  drawSeries({ key, canvas }, time) {
    const { pen, width, height } = prepare(canvas);
    if (width === 0) return;
    const left = 34, top = 7, w = width - left - 4, h = height - top - 6;
    const rows = this.rows.filter((row) => row.time > time - WINDOW && row.time <= time);
    let most = 1.2;
    for (const row of rows) for (const r of row.robots) if (Number.isFinite(r[key])) most = Math.max(most, r[key]);
    const high = most > 1.2 ? roundUp(most) : 1.2;
    axes(pen, left, top, w, h, 0, high, high > 5 ? [0, high] : [0, 1, ...(high > 1.3 ? [high] : [])]);
    const count = rows.length ? rows[rows.length - 1].robots.length : 0;
    for (let i = 0; i < count; ++i) {
      pen.strokeStyle = pen.fillStyle = css('--robot-' + i);
      pen.lineWidth = 1.8;
      pen.setLineDash(i % 2 ? [6, 3] : []);
      pen.beginPath();
      let down = false;
      const valueAt = (k) => (k < rows.length && rows[k].robots[i] ? rows[k].robots[i][key] : NaN);
      rows.forEach((row, k) => {
        const value = valueAt(k);
        if (!Number.isFinite(value)) { down = false; return; }
        const x = left + w * (1 - (time - row.time) / WINDOW), y = top + h * (1 - Math.min(value, high) / high);
        if (down) pen.lineTo(x, y); else pen.moveTo(x, y);
        // one value alone makes no line
        if (!down && !Number.isFinite(valueAt(k + 1))) pen.fillRect(x - 1, y - 1, 2, 2);
        down = true;
      });
      pen.stroke();
    }
    pen.setLineDash([]);
  }

  drawForce() {
    const { pen, width, height } = prepare(this.force);
    if (width === 0) return;
    const left = 34, top = 7, w = width - left - 8, h = height - top - 18;
    let far = 1, strong = 5;
    for (const push of this.pushes) {
      for (const [x, f] of push.points) { far = Math.max(far, Math.abs(x)); strong = Math.max(strong, f); }
      if (push.line) far = Math.max(far, Math.min(Math.abs(push.line[0]), 2 * far));
    }
    far = roundUp(far);
    strong = roundUp(strong);
    axes(pen, left, top, w, h, 0, strong, [0, strong / 2, strong]);
    const x0 = left + 0.15 * w, scale = (0.85 * w) / far;
    const place = ([x, f]) => [x0 + x * scale, top + h * (1 - f / strong)];
    pen.fillStyle = css('--soft');
    pen.textAlign = 'center';
    pen.textBaseline = 'top';
    pen.fillText('0', x0, top + h + 3);
    pen.textAlign = 'right';
    pen.fillText(`${+far.toPrecision(2)} cm`, left + w, top + h + 3);
    pen.save();
    pen.beginPath();
    pen.rect(left, top, w, h);
    pen.clip();
    this.pushes.forEach((push, i) => {
      pen.fillStyle = pen.strokeStyle = css('--robot-' + i);
      for (const point of push.points) {
        const [x, y] = place(point);
        pen.fillRect(x - 1, y - 1, 2, 2);
      }
      if (push.line) {
        pen.lineWidth = 1.2;
        pen.beginPath();
        pen.moveTo(...place([0, 0]));
        pen.lineTo(...place([3 * push.line[0], 3 * push.line[1]]));
        pen.stroke();
      }
    });
    pen.restore();
  }
}
