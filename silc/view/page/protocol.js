// SPDX-License-Identifier: Apache-2.0
// The twin of silc/view/protocol.h: frames from the server, inputs to it. docs/view.md has the tables.

export const VERSION = 2;
const MAGIC = 0x564c4953;
const HEADER_BYTES = 72;
const ROBOT_BYTES = 516;
export const POINTS = ['centre of mass', 'left hand', 'right hand', 'held point'];
export const HELD = 3;
export const STATUS = ['running', 'fell', 'the policy is not finite', 'diverged'];
export const MODES = ['double support', 'left support', 'right support', 'flight'];
// StiffnessStatus: why something could not be judged
export const WHY = ['', 'not finite', 'a point cannot move', 'no stance', 'the action is an integrator',
  'the action loop is unstable', 'no compliance', 'the budget is not positive', 'no convergence', 'in flight'];

// Whether a button's push is over, and its displacement is followed on.
export const isOver = (robot) => robot.push === 2 && robot.f.every((f) => f === 0);

// Reads numbers one after the other.
class Reader {
  constructor(view, at) { this.view = view; this.at = at; }
  u8() { return this.view.getUint8(this.at++); }
  u16() { const v = this.view.getUint16(this.at, true); this.at += 2; return v; }
  u32() { const v = this.view.getUint32(this.at, true); this.at += 4; return v; }
  f32() { const v = this.view.getFloat32(this.at, true); this.at += 4; return v; }
  f64() { const v = this.view.getFloat64(this.at, true); this.at += 8; return v; }
  reals(n) { const v = new Array(n); for (let i = 0; i < n; ++i) v[i] = this.f32(); return v; }
}

// A frame as an object, or null when the bytes are not one of this version.
export function decodeState(buffer) {
  if (buffer.byteLength < HEADER_BYTES) return null;
  const view = new DataView(buffer);
  const head = new Reader(view, 0);
  if (head.u32() !== MAGIC || head.u16() !== VERSION) return null;
  const robots = head.u16();
  const frame = { sequence: head.u32(), bodies: head.u32(), time: head.f64(), sent: head.f64() };
  const stride = ROBOT_BYTES + 28 * frame.bodies;
  if (buffer.byteLength !== HEADER_BYTES + robots * stride) return null;
  frame.speed = head.f32();
  frame.achieved = head.f32();
  frame.scene = head.u32();
  frame.paused = head.u8() !== 0;
  frame.samePush = head.u8() !== 0;
  frame.gravity = head.u8();
  head.u8();
  frame.command = head.reals(5);
  frame.robots = [];
  for (let i = 0; i < robots; ++i) {
    const r = new Reader(view, HEADER_BYTES + i * stride);
    const robot = { status: r.u8(), mode: r.u8(), push: r.u8(), falls: r.u8(), policy: r.u16(), budget: r.u16() };
    robot.f = r.reals(3);
    robot.p = r.reals(3);
    robot.moved = r.reals(3);
    robot.predicted = r.reals(3);
    robot.feet = [0, 1].map(() => ({ p: r.reals(3), f: r.reals(3) }));
    robot.reading = {
      age: r.f32(), sigma: r.f32(), worst: r.f32(), radius: r.f32(), observeTime: r.f32(), status: r.u32() };
    robot.points = POINTS.map(() => ({ p: r.reals(3), felt: r.reals(9), budget: r.reals(9), worst: r.f32() }));
    robot.told = { value: r.reals(3), low: r.reals(3), high: r.reals(3) };
    robot.poses = r.reals(7 * frame.bodies);
    frame.robots.push(robot);
  }
  return frame;
}

function message(type, words, reals) {
  const view = new DataView(new ArrayBuffer(4 + 4 * (words.length + reals.length)));
  view.setUint16(0, VERSION, true);
  view.setUint8(2, type);
  let at = 4;
  for (const word of words) { view.setUint32(at, word, true); at += 4; }
  for (const real of reals) { view.setFloat32(at, real, true); at += 4; }
  return view.buffer;
}

export const input = {
  ack: (sequence) => message(1, [sequence], []),
  hand: (take) => message(2, [take ? 1 : 0], []),
  grab: (robot, body, p) => message(3, [robot, body], p),
  pull: (p) => message(4, [], p),
  release: () => message(5, [], []),
  command: (c) => message(6, [], c),
  pause: (on) => message(7, [on ? 1 : 0], []),
  speed: (s) => message(8, [], [s]),
  reset: () => message(9, [], []),
  push: (index) => message(10, [index], []),
  policy: (robot, index) => message(11, [robot, index], []),
  budget: (robot, index) => message(12, [robot, index], []),
  gravity: (choice) => message(13, [choice], []),
  samePush: (on) => message(14, [on ? 1 : 0], []),
  spring: (k) => message(15, [], [k]),
  told: (robot, values) => message(16, [robot], values),
  shown: (sequence, age) => message(17, [sequence], [age]),
};
