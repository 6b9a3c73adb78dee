// SPDX-License-Identifier: Apache-2.0
// The panel: what is asked of the robots, by mouse, finger or key, and what is read from them.
import { input, isOver, MODES, STATUS, WHY, POINTS } from 'view/protocol.js';
import { verdict } from 'view/ellipsoids.js';

const byId = (id) => document.getElementById(id);
const WORDS = { holds: 'holds', over: 'over', unjudged: 'not judged' };
const digits = (v, n = 2) => (Number.isFinite(v) ? v.toFixed(n) : '–');
const norm = (v) => Math.hypot(...v);

function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in node && key !== 'list') node[key] = value; else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

// [mm] along each axis under 10 N along it: the diagonal of a compliance [m/N], row by row. 0.0 is stiff; below zero the point
// comes to rest on the other side.
const movedBy10N = (C) => [0, 4, 8].map((k) => 1e4 * C[k]);
const millimetres = (v) => (!Number.isFinite(v) ? '–' : v.toFixed(Math.abs(v) < 99.95 ? 1 : 0).replace(/^-(0\.0)$/, '$1').replace('-', '−'));

// The budget that a commanded policy is told: a slider for each number, by ratios as its training drew them.
const TOLD = [['centre of mass', 'N/m'], ['hands', 'N/m'], ['null space', 'N·m/rad']];
const STEPS = 200;
const atStep = (step, low, high) => Math.min(high, Math.max(low, +(low * (high / low) ** (step / STEPS)).toPrecision(3)));
const stepOf = (value, low, high) => (high > low ? Math.round(STEPS * Math.log(value / low) / Math.log(high / low)) : 0);

// Whether a control may show what the server has: not while it is being moved, and not before the server has heard of it.
// A machine that draws slowly hears late; one that never does (another page has the hand) is waited for 3 s.
function mayShow(touched, wanted, shown) {
  const idle = performance.now() - touched;
  const heard = wanted.every((v, k) => !Number.isFinite(shown[k]) || Math.abs(v - shown[k]) <= 1e-3 * Math.max(1, Math.abs(v)));
  return idle > (heard ? 500 : 3000);
}

export class Controls {
  // view: {send(bytes), act(bytes), actSoon(key, bytes), frame(), newest(), drag, recorder, orbit, ellipsoids, live()}
  constructor(view) {
    this.view = view;
    this.command = [0, 0, 0, 0.75, 0];
    this.hand = 'free';
    this.touched = -Infinity;
    for (const [id, index, unit] of [['vx', 0, 'm/s'], ['vy', 1, 'm/s'], ['yaw', 2, 'rad/s'], ['height', 3, 'm']]) {
      byId(id).addEventListener('input', () => { this.command[index] = +byId(id).value; this.sendCommand(index < 3); });
      byId(id).dataset.unit = unit;
    }
    byId('walk').addEventListener('click', () => { this.command[4] = this.command[4] ? 0 : 1; this.sendCommand(false); });
    byId('stand').addEventListener('click', () => { this.command = [0, 0, 0, this.command[3], 0]; this.sendCommand(false); });
    byId('pause').addEventListener('click', () => { if (view.newest()) view.act(input.pause(!view.newest().paused)); });
    byId('reset').addEventListener('click', () => view.act(input.reset()));
    this.choose(byId('speed'), input.speed);
    this.choose(byId('gravity'), input.gravity);
    byId('same-push').addEventListener('change', () => view.act(input.samePush(byId('same-push').checked)));
    byId('spring').addEventListener('input', () => {
      byId('spring-out').textContent = byId('spring').value + ' N/m';
      view.actSoon('spring', input.spring(+byId('spring').value));
    });
    byId('pull-force').addEventListener('input', () => {
      byId('pull-force-out').textContent = byId('pull-force').value + ' N';
      if (view.drag.steady) view.drag.steady.newtons = +byId('pull-force').value;
    });
    byId('force').addEventListener('input', () => {
      view.ellipsoids.force = +byId('force').value;
      byId('force-out').textContent = byId('legend-force').textContent = byId('force').value + ' N';
    });
    byId('pull').addEventListener('click', () => this.togglePull());
    byId('hand').addEventListener('click', () => view.send(input.hand(this.hand !== 'yours')));
    byId('scrub').addEventListener('input', () => { view.recorder.playing = null; view.recorder.scrub(+byId('scrub').value); });
    byId('play').addEventListener('click', () => view.recorder.toggle(performance.now()));
    byId('live').addEventListener('click', () => this.goLive());
    byId('save').addEventListener('click', () => this.save());
    byId('link').addEventListener('click', () => this.copyLink());
    addEventListener('keydown', (event) => this.key(event));
  }

  // A list that asks something of the robots; without the hand on them it goes back to what is.
  choose(list, message) {
    list.addEventListener('change', () => { if (!this.view.act(message(+list.value))) list.blur(); });
  }

  build(description) {
    this.description = description;
    byId('robot-title').textContent = description.robot;
    byId('push-buttons').replaceChildren(...description.pushes.map((name, i) => element(
      'button', { id: 'push-' + i, onclick: () => this.view.act(input.push(i)) }, name + ' ', element('kbd', {}, String(i + 1)))));
    const hands = description.hands.map((h, i) => element('option', { value: 'hand-' + i }, i ? 'right hand' : 'left hand'));
    const bodies = description.bodies.map((name, i) => element('option', { value: String(i) }, name)).slice(1);
    byId('pull-body').replaceChildren(...hands, ...bodies);
    byId('pull-robot').replaceChildren(...Array.from({ length: description.robots }, (_, i) => element('option', { value: String(i) }, `robot ${i + 1}`)));
    byId('pull-robot-row').hidden = byId('same-push-row').hidden = description.robots < 2;
    byId('push-hint').textContent = `Drag ${description.hands.length ? 'a hand, or any body,' : 'any body'} with the mouse.`;
    this.cards = [];
    for (let i = 0; i < description.robots; ++i) this.cards.push(this.card(i));
    byId('readings').replaceChildren(...this.cards.map((c) => c.node));
  }

  // One robot: its policy, its budget, and what the observer says.
  card(i) {
    const options = (names) => names.map((name, k) => element('option', { value: String(k) }, name));
    const policy = element('select', { id: `policy-${i}` }, ...options(this.description.policies));
    const budget = element('select', { id: `budget-${i}` }, ...options(this.description.budgets));
    this.choose(policy, (index) => input.policy(i, index));
    this.choose(budget, (index) => input.budget(i, index));
    const says = element('p', { id: `verdict-${i}`, className: 'verdict' }, '–');
    const line = element('p', { id: `line-${i}`, className: 'hint' });
    const push = element('p', { id: `push-line-${i}`, className: 'push' });
    const shown = this.description.hands.length ? 3 : 1;  // without hands the centre of mass alone
    const rows = POINTS.slice(0, shown).map((name) => ({ name, cells: [0, 1, 2, 3].map(() => element('td', {}, '–')) }));
    const table = element('table', {},
      element('thead', {}, element('tr', {}, ...['mm per 10 N', 'x', 'y', 'z', 'budget'].map((t, k) => element('th', k ? { style: 'text-align:right' } : {}, t)))),
      element('tbody', {}, ...rows.map((r) => element('tr', {}, element('th', {}, r.name), ...r.cells))));
    policy.disabled = budget.disabled = document.body.classList.contains('recorded');
    const told = this.toldSliders(i);
    const node = element('div', { className: 'robot' }, element('label', { className: 'needs-hand' }, 'policy', policy), element('label', { className: 'needs-hand' }, 'budget', budget), told.node, says, line, table, push);
    node.style.borderLeftColor = `var(--robot-${i})`;
    return { node, policy, budget, told, says, line, push, rows };
  }

  // Hidden until a policy is there that is told its budget.
  toldSliders(i) {
    const told = { values: [1, 1, 1], touched: -Infinity };
    told.rows = TOLD.map(([name, unit], k) => {
      const slider = element('input', { id: `told-${i}-${k}`, type: 'range', min: '0', max: String(STEPS), step: '1' });
      const out = element('output', { id: `told-${i}-${k}-out` });
      slider.addEventListener('input', () => {
        told.values[k] = atStep(+slider.value, told.low[k], told.high[k]);
        told.touched = performance.now();
        out.textContent = `${+told.values[k].toPrecision(3)} ${unit}`;
        slider.setAttribute('aria-valuetext', out.textContent);
        // what this policy is not told is sent as 1 and not read
        this.view.actSoon('told' + i, input.told(i, told.values.map((v) => (Number.isFinite(v) ? v : 1))));
      });
      return { label: element('label', {}, name, slider, out), slider, out, unit };
    });
    told.node = element('fieldset', { id: `told-${i}`, className: 'told needs-hand' }, element('legend', {}, 'the budget it is told'), ...told.rows.map((r) => r.label));
    told.node.hidden = true;
    return told;
  }

  showTold(told, { value, low, high }) {
    told.node.hidden = !value.some(Number.isFinite);
    if (told.node.hidden || !mayShow(told.touched, told.values, value)) return;
    told.node.disabled = !this.view.live();
    Object.assign(told, { values: value.slice(), low, high });
    told.rows.forEach((row, k) => {
      row.label.hidden = !Number.isFinite(value[k]);
      if (row.label.hidden) return;
      row.slider.value = stepOf(value[k], low[k], high[k]);
      row.out.textContent = `${+value[k].toPrecision(3)} ${row.unit}`;
      row.slider.setAttribute('aria-valuetext', row.out.textContent);
    });
  }

  // A slider that moves means walking, as with the keys; height does not.
  sendCommand(moves) {
    if (moves) this.command[4] = this.command.slice(0, 3).some((v) => v !== 0) ? 1 : this.command[4];
    this.touched = performance.now();
    this.showCommand(this.command);
    this.view.actSoon('command', input.command(this.command));
  }

  showCommand(c) {
    [['vx', 0], ['vy', 1], ['yaw', 2], ['height', 3]].forEach(([id, k]) => {
      byId(id).value = c[k];
      byId(id + '-out').textContent = `${+c[k].toFixed(2)} ${byId(id).dataset.unit}`;
    });
    byId('walk').setAttribute('aria-pressed', c[4] > 0.5);
  }

  togglePull() {
    const drag = this.view.drag;
    if (drag.steady) { drag.release(); return; }
    const choice = byId('pull-body').value;
    const hand = choice.startsWith('hand-') ? this.description.hands[+choice.slice(5)] : null;
    drag.pullSteadily(+byId('pull-robot').value, hand ? hand.body : +choice, hand ? hand.pos : [0, 0, 0],
      byId('pull-axis').value.split(',').map(Number), +byId('pull-force').value, +byId('spring').value);
  }

  goLive() {
    this.view.recorder.goLive();
    if (location.hash) history.replaceState(null, '', location.pathname + location.search);
  }

  async copyLink() {
    const address = this.view.recorder.link();
    byId('link-row').hidden = false;
    byId('link-text').value = address;
    byId('link-text').select();
    try { await navigator.clipboard.writeText(address); } catch (error) { /* it stands in the field */ }
  }

  save() {
    for (let i = 0; this.view.newest() && i < this.description.robots; ++i) {
      const query = this.view.query();
      const url = `/recording.npz${query ? query + '&' : '?'}robot=${i}`;
      element('a', { href: url, download: `${this.description.policies[this.view.newest().robots[i].policy]}.npz` }).click();
    }
  }

  key(event) {
    const tag = event.target.tagName;
    if (event.ctrlKey || event.metaKey || event.altKey || tag === 'SELECT' || (tag === 'INPUT' && event.target.type === 'text')) return;
    const range = tag === 'INPUT' && event.key.startsWith('Arrow');
    const box = tag === 'INPUT' && event.target.type === 'checkbox' && event.key === ' ';
    if (range || box || (tag === 'BUTTON' && (event.key === ' ' || event.key === 'Enter'))) return;
    const nudge = (k, by, most) => {
      this.command[k] = Math.max(-most, Math.min(most, +(this.command[k] + by).toFixed(2)));
      this.sendCommand(true);
    };
    const actions = {
      w: () => nudge(0, 0.1, 1), s: () => nudge(0, -0.1, 1), a: () => nudge(1, 0.1, 0.6), d: () => nudge(1, -0.1, 0.6),
      q: () => nudge(2, 0.1, 1), e: () => nudge(2, -0.1, 1), t: () => byId('walk').click(), x: () => byId('stand').click(),
      ' ': () => byId(this.view.recorder.loops ? 'play' : 'pause').click(), r: () => byId('reset').click(), l: () => this.goLive(), h: () => byId('hand').click(),
      f: () => this.togglePull(),
      ...Object.fromEntries((this.description ? this.description.pushes : []).map((name, k) => [String(k + 1), () => this.view.act(input.push(k))])),
    };
    const action = actions[event.key.toLowerCase()];
    if (action) action();
    else if (!this.view.orbit.key(event.key, event.shiftKey)) return;
    event.preventDefault();
  }

  // The slider of a recording spans all of it.
  showLength(recorder) {
    this.length = recorder.newest - recorder.oldest;
    byId('h-record').textContent = 'The recording';
    byId('scrub').min = -this.length;
  }

  words(words) {
    if (words.hand) {
      this.hand = words.hand;
      document.body.classList.toggle('spectator', words.hand !== 'yours');
      if (words.hand !== 'yours') this.view.drag.drop();
      byId('hand-text').textContent = {
        yours: 'You have your hand on the robots.',
        free: 'Nobody has a hand on the robots.',
        taken: 'Another page has its hand on the robots; you watch.' }[words.hand] +
        (words.pages > 1 ? ` ${words.pages} pages are open.` : '');
      byId('hand').firstChild.textContent = words.hand === 'yours' ? 'let go ' : 'take the robot in hand ';
    }
  }

  show(frame, recorder) {
    byId('pause').setAttribute('aria-pressed', frame.paused);
    byId('pull').setAttribute('aria-pressed', this.view.drag.steady !== null);
    if (mayShow(this.touched, this.command, frame.command)) { this.command = frame.command.slice(); this.showCommand(this.command); }
    const set = (node, value) => { if (document.activeElement !== node && node.value !== String(value)) node.value = value; };
    set(byId('gravity'), frame.gravity);
    set(byId('speed'), [1, 0.5, 0.25, 0.1].find((s) => Math.abs(s - frame.speed) < 1e-3) || 1);
    byId('same-push').checked = frame.samePush;
    const back = recorder.live ? 0 : frame.time - recorder.newest;
    if (document.activeElement !== byId('scrub') || recorder.playing || recorder.live) byId('scrub').value = back;
    byId('scrub-out').textContent = recorder.loops ? `${(this.length + back).toFixed(1)} of ${this.length.toFixed(1)} s`
      : recorder.live ? 'live' : back < -30.5 || back > 0.01 ? 'from a link' : back.toFixed(1) + ' s';
    byId('play').firstChild.textContent = recorder.playing ? 'pause ' : 'play ';
    frame.robots.forEach((robot, i) => this.cards[i] && this.showRobot(this.cards[i], robot, frame.scene === this.description.number));
  }

  showRobot(card, robot, own) {
    const r = robot.reading;
    // a link from another server has places in that server's lists: here they have no names
    if (document.activeElement !== card.policy) card.policy.value = own ? robot.policy : '';
    if (document.activeElement !== card.budget) card.budget.value = own ? robot.budget : '';
    this.showTold(card.told, robot.told);
    const judged = Number.isFinite(r.sigma);
    const word = judged ? (r.sigma <= 1 ? 'holds' : 'over') : 'unjudged';
    card.says.className = 'verdict ' + word;
    card.says.textContent = judged
      ? `budget ${word === 'holds' ? 'holds' : 'does not hold'}: σ ${digits(r.sigma)}, worst direction ${digits(r.worst)}`
      : `not judged${r.status ? ': ' + WHY[r.status] : ''}`;
    card.line.textContent = (robot.status ? STATUS[robot.status] + ', ' : '') + `${MODES[robot.mode]}; spectral radius ${digits(r.radius)}` +
      (robot.falls ? `; fell ${robot.falls}×` : '');
    card.rows.forEach((row, k) => {
      const point = robot.points[k], kind = verdict(point.worst);
      movedBy10N(point.felt).forEach((value, a) => { row.cells[a].textContent = millimetres(value); });
      row.cells[3].textContent = WORDS[kind];
      row.cells[3].className = 'verdict ' + kind;
    });
    const predicted = 100 * norm(robot.predicted);
    card.push.textContent = isOver(robot) ? `after the push: ${digits(100 * norm(robot.moved), 1)} cm from where it was`
      : robot.push ? `pushed with ${digits(norm(robot.f), 1)} N: moved ${digits(100 * norm(robot.moved), 1)} cm` +
        (Number.isFinite(predicted) ? `, predicted ${digits(predicted, 1)} cm` : '')
      : '';
  }
}
