// SPDX-License-Identifier: Apache-2.0
// A hand on the robot: the mouse or a finger pulls the body it holds through a spring; beside the robot it turns the
// camera. A steady pull does the same without a mouse.
import * as THREE from 'three';
import { input } from 'view/protocol.js';

const HAND_REACH = 0.14;  // [m] a grip this near to a hand's point takes that point: what silc predicts is there

export class Drag {
  // view: {robots: RobotScene, orbit: OrbitCamera, frame(): object, act(bytes), actSoon(key, bytes), mayAct(): bool, live(): bool}
  constructor(canvas, view) {
    this.canvas = canvas;
    this.view = view;
    this.ray = new THREE.Raycaster();
    this.pointers = new Map();
    this.held = null;     // {robot, body, p}
    this.steady = null;   // {robot, body, p, f: Vector3 [N], k}
    canvas.addEventListener('pointerdown', (e) => this.down(e));
    canvas.addEventListener('pointermove', (e) => this.move(e));
    for (const type of ['pointerup', 'pointercancel']) canvas.addEventListener(type, (e) => this.up(e));
    canvas.addEventListener('wheel', (e) => {
      e.preventDefault();
      view.orbit.zoom(Math.exp(0.001 * e.deltaY));
    }, { passive: false });
    canvas.addEventListener('contextmenu', (e) => e.preventDefault());
  }

  aim(e) {
    const box = this.canvas.getBoundingClientRect();
    const at = new THREE.Vector2(((e.clientX - box.left) / box.width) * 2 - 1, 1 - ((e.clientY - box.top) / box.height) * 2);
    this.ray.setFromCamera(at, this.view.robots.camera);
  }

  // what is under the pointer
  pick(e) {
    this.aim(e);
    const meshes = this.view.robots.robots.flatMap((r) => r.pickable);
    return this.ray.intersectObjects(meshes)[0] || null;
  }

  down(e) {
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(e.pointerId);
    this.pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    if (this.pointers.size > 1 || e.button !== 0 || !this.view.live()) return;
    const hit = this.pick(e);
    if (hit && this.view.mayAct()) this.grab(hit);
  }

  grab(hit) {
    const { robot, body } = hit.object.userData;
    const scene = this.view.robots;
    const group = scene.robots[robot].bodies[body];
    let local = group.worldToLocal(hit.point.clone());
    const hand = scene.description.hands.find((h) => h.body === body);
    if (hand && local.distanceTo(new THREE.Vector3(...hand.pos)) < HAND_REACH) local = new THREE.Vector3(...hand.pos);
    const world = group.localToWorld(local.clone());
    this.held = { robot, body, p: local };
    // the mouse moves in the plane of the picture through the point it took; where it first was is no pull
    const normal = scene.camera.getWorldDirection(new THREE.Vector3());
    this.plane = new THREE.Plane().setFromNormalAndCoplanarPoint(normal, world);
    const start = this.ray.ray.intersectPlane(this.plane, new THREE.Vector3());
    this.shift = world.clone().sub(start || world);
    this.canvas.classList.add('pulling');
    this.view.act(input.grab(robot, body, local.toArray()));
    this.target = world;
  }

  move(e) {
    const last = this.pointers.get(e.pointerId);
    if (!last) {
      // no button is down: say what could be taken; rarely, since looking costs time
      if (e.timeStamp - (this.looked || 0) > 100) {
        this.looked = e.timeStamp;
        this.canvas.classList.toggle('over-robot', this.pick(e) !== null);
      }
      return;
    }
    const dx = e.clientX - last.x, dy = e.clientY - last.y;
    if (this.held) {
      this.aim(e);
      const at = this.ray.ray.intersectPlane(this.plane, new THREE.Vector3());
      if (at) this.target = at.add(this.shift);
    } else if (this.pointers.size === 2) {
      const before = this.spread();
      this.pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
      this.view.orbit.zoom(before / Math.max(1, this.spread()));
      return;
    } else if (e.buttons & 2 || e.shiftKey) {
      const scale = this.view.orbit.distance / 900;
      this.view.orbit.shift(dx * scale, dy * scale);
    } else {
      this.view.orbit.turn(dx * 0.006, dy * 0.006);
    }
    this.pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
  }

  spread() {
    const [a, b] = [...this.pointers.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  }

  up(e) {
    this.pointers.delete(e.pointerId);
    if (this.held && this.pointers.size === 0) this.release();
  }

  release() {
    this.drop();
    this.view.act(input.release());
  }

  // Nothing is held any more; the server knows.
  drop() {
    this.held = this.steady = null;
    this.canvas.classList.remove('pulling');
  }

  // `direction` a unit vector, `newtons` the force; held until release()
  pullSteadily(robot, body, p, direction, newtons, spring) {
    if (!this.view.act(input.grab(robot, body, p))) return;
    this.steady = { robot, direction, newtons, spring };
    this.held = null;
  }

  // once per picture: where the spring's other end is
  tick() {
    if (this.held) {
      const offset = this.view.robots.robots[this.held.robot].group.position.y;
      this.view.actSoon('pull', input.pull([this.target.x, this.target.y - offset, this.target.z]));
    } else if (this.steady) {
      const robot = this.view.frame().robots[this.steady.robot];
      if (!robot.push) return;
      const reach = this.steady.newtons / this.steady.spring;
      this.view.actSoon('pull', input.pull(robot.p.map((x, k) => x + reach * this.steady.direction[k])));
    }
  }
}
