// SPDX-License-Identifier: Apache-2.0
// Puts the page together: frames come in and are acknowledged, the newest is drawn.
import * as THREE from 'three';
import { decodeState, input, isOver } from 'view/protocol.js';
import { Connection } from 'view/connection.js';
import { RobotScene, addressSays } from 'view/scene.js';
import { OrbitCamera } from 'view/camera.js';
import { Ellipsoids } from 'view/ellipsoids.js';
import { Arrows } from 'view/arrows.js';
import { Drag } from 'view/drag.js';
import { Curves } from 'view/curves.js';
import { Controls } from 'view/controls.js';
import { Recorder, fromText } from 'view/recorder.js';
import { Presented } from 'view/presented.js';

const byId = (id) => document.getElementById(id);
// To 5 %, so that the words rest and are not read aloud again and again; to 1 % below 10.
const roundPercent = (percent) => (percent < 10 ? Math.round(percent) : 5 * Math.round(percent / 5));
const recording = window.silcRecording || null;  // a page with a recording inside: {scene, frames: [text]}; no socket

class Viewer {
  constructor() {
    this.robots = new RobotScene(byId('canvas'));
    this.orbit = new OrbitCamera(this.robots.camera);
    this.ellipsoids = new Ellipsoids(this.robots.scene);
    this.arrows = new Arrows(this.robots.scene);
    this.curves = new Curves();
    this.recorder = new Recorder();
    this.newest = null;   // {buffer, frame} that was received last
    this.drawn = null;    // the frame on the screen
    this.built = false;
    const view = {
      robots: this.robots, orbit: this.orbit, ellipsoids: this.ellipsoids, recorder: this.recorder, frame: () => this.drawn,
      newest: () => this.newest && this.newest.frame,
      live: () => this.recorder.live && this.drawn !== null && !recording,
      send: (bytes) => { if (this.connection) this.connection.send(bytes); }, query: () => Connection.query(),
      mayAct: () => this.mayAct(), act: (bytes) => this.act(bytes), actSoon: (key, bytes) => this.actSoon(key, bytes) };
    this.sent = new Set();     // what has gone out since the last frame came, and
    this.waiting = new Map();  // the newest of what has to wait for the next, by key
    this.drag = new Drag(byId('canvas'), view);
    view.drag = this.drag;
    this.controls = new Controls(view);
    this.labels = [];
    if (addressSays('measure')) this.presented = new Presented(byId('stage'), (sequence, age) => view.send(input.shown(sequence, age)));
    requestAnimationFrame((now) => this.tick(now));
  }

  // ---- from the server ----

  async begin() {
    await this.fetchScene();
    if (!this.recorder.fromAddress()) this.leaveMoment('this link was made by another version of silc view, or is not whole');
    this.checkMoment();
    this.connection = new Connection({
      frame: (buffer) => this.receive(buffer),
      words: (words) => this.listen(words),
      state: (state) => {
        byId('connection').textContent = state === 'open' ? 'connected' : 'the server is away; trying again…';
        document.body.classList.toggle('away', state !== 'open');
        this.sent.clear();
        this.waiting.clear();
      },
    });
  }

  // A recording: the frames are here, and play over and over.
  async playRecording({ scene, frames }) {
    document.body.classList.add('recorded');
    byId('connection').textContent = 'a recording';
    this.build(scene);
    this.recorder.kept = this.curves.kept = Infinity;
    for (const text of frames) {
      const buffer = fromText(text), frame = decodeState(buffer);
      this.newest = { buffer, frame };
      this.recorder.add(frame.time, buffer);
      this.curves.add(frame);
    }
    this.recorder.loops = true;
    this.controls.showLength(this.recorder);
    this.recorder.play(performance.now());
  }

  async fetchScene() {
    const answer = await fetch('/scene.json' + Connection.query());
    if (!answer.ok) throw new Error(`scene.json: ${answer.status}`);
    this.build(await answer.json());
  }

  build(description) {
    this.robots.build(description);
    this.robots.resize();
    this.ellipsoids.build(description.robots);
    this.arrows.build(description.robots);
    this.controls.build(description);
    if (!this.built) this.orbit.fit(description.robots, this.robots.camera.aspect);
    byId('labels').replaceChildren();
    this.labels = [];
    for (let i = 0; i < description.robots; ++i) {
      const name = document.createElement('div'), push = document.createElement('div');
      name.className = 'label';
      push.className = 'label push';
      name.style.borderLeftColor = push.style.borderLeftColor = `var(--robot-${i})`;
      byId('labels').append(name, push);
      this.labels.push({ name, push });
    }
    if (this.built) this.recorder.frames = [];  // of another server
    this.built = true;
    this.checkMoment();
  }

  // A moment of other robots than these cannot be shown here.
  checkMoment() {
    const moment = this.recorder.shown;
    if (!moment || this.robots.fits(moment)) return;
    const robots = (n) => `${n} robot${n === 1 ? '' : 's'}`;
    const here = this.robots.robots.length;
    this.leaveMoment(moment.robots.length !== here ? `that moment is of ${robots(moment.robots.length)}, and this server has ${here}`
      : 'that moment is of another robot');
  }

  leaveMoment(why) {
    this.controls.goLive();
    this.say(why + '; you see what is live');
  }

  // ---- to the server ----

  // Whether this page has its hand on the robots; if not, it says so.
  mayAct() {
    if (!this.connection) return false;
    if (this.controls.hand === 'yours') return true;
    this.say(this.controls.hand === 'taken' ? 'another page has its hand on the robots: H asks for it' : 'nobody has a hand on the robots: H takes them in hand');
    return false;
  }

  // What is done to the robots. Whether it went out.
  act(bytes) {
    if (!this.mayAct()) return false;
    this.sendWaiting();
    this.connection.send(bytes);
    return true;
  }

  // What moves with the mouse, which may be quicker than frames: one of a key for each frame that came, the newest.
  actSoon(key, bytes) {
    if (!this.mayAct()) return;
    if (this.sent.has(key)) { this.waiting.set(key, bytes); return; }
    this.connection.send(bytes);
    this.sent.add(key);
  }

  sendWaiting() {
    for (const [key, bytes] of this.waiting) { this.connection.send(bytes); this.sent.add(key); }
    this.waiting.clear();
  }

  receive(buffer) {
    const frame = decodeState(buffer);
    if (!frame) {
      byId('connection').textContent = 'the server speaks another version: load the page again';
      this.misunderstood = true;
      return;
    }
    if (this.misunderstood) byId('connection').textContent = 'connected';
    this.misunderstood = false;
    this.connection.acknowledge(frame.sequence);
    this.sent.clear();
    this.sendWaiting();
    // after a restart of the server: another scene
    if (this.robots.description && frame.scene !== this.robots.description.number) {
      if (!this.fetching) this.fetching = this.fetchScene().finally(() => { this.fetching = null; });
      return;
    }
    // what is overtaken is not drawn, but the curves and the recorder have it
    this.newest = { buffer, frame };
    this.recorder.add(frame.time, buffer);
    this.curves.add(frame);
    // without a GPU a picture takes longer than the screen's rhythm: it begins when its state comes
    if (this.robots.software && this.recorder.live) this.drawIfDue(frame, performance.now(), true);
  }

  listen(words) {
    this.controls.words(words);
    if (words.notice || words.error) this.say(words.notice || 'refused: ' + words.error);
  }

  say(text) {
    if ([...byId('notices').children].some((note) => note.textContent === text)) return;
    const note = document.createElement('p');
    note.textContent = text;
    byId('notices').append(note);
    while (byId('notices').children.length > 4) byId('notices').firstChild.remove();
    setTimeout(() => note.remove(), 8000);
  }

  // ---- to the screen ----

  tick(now) {
    requestAnimationFrame((next) => this.tick(next));
    this.recorder.tick(now);
    if (this.drawn) this.drag.tick();
    const frame = this.recorder.live ? this.newest && this.newest.frame : this.recorder.shown;
    const drawnOnArrival = this.robots.software && this.recorder.live;
    this.drawIfDue(frame, now, frame !== this.drawn && !drawnOnArrival);
  }

  // `fresh`: it has not been drawn yet, and should be soon
  drawIfDue(frame, now, fresh) {
    if (!frame || !this.built || !this.robots.fits(frame)) return;
    if (this.robots.pace.mayDraw(now, fresh)) this.draw(frame, now);
  }

  draw(frame, now) {
    const place = (i, p) => this.robots.place(i, p);
    if (!this.drawn) this.orbit.centre.copy(this.robots.centre(frame));
    this.drawn = frame;
    this.robots.resize();
    this.robots.show(frame);
    this.ellipsoids.show(frame, place);
    this.arrows.show(frame, place);
    this.orbit.follow(this.robots.centre(frame), (now - (this.followed ?? now)) / 1000);
    this.followed = now;
    this.orbit.update();
    this.robots.render(now);
    if (this.presented) this.presented.drawn(frame.sequence);
    this.curves.draw(frame.time, now);
    // text changes ten times a second, or nobody can read it
    if (!(now - this.told < 100)) {
      this.told = now;
      this.controls.show(frame, this.recorder);
      this.showBanner(frame);
    }
    this.showLabels(frame);
  }

  showBanner(frame) {
    let text = '';
    if (recording) text = '';
    else if (!this.recorder.live) text = this.recorder.playing ? 'replay' : 'a moment of the past';
    else if (frame.paused) text = 'paused';
    else if (frame.achieved < 0.95 * frame.speed) {
      text = `runs at ${roundPercent(100 * frame.achieved / frame.speed)} % of ${frame.speed === 1 ? 'real time' : 'the asked speed'}`;
    }
    if (byId('banner').textContent !== text) byId('banner').textContent = text;
  }

  showLabels(frame) {
    const put = (node, at, text) => {
      node.style.display = at && text ? '' : 'none';
      if (!at || !text) return;
      if (node.textContent !== text) node.textContent = text;
      node.style.transform = `translate(${at.x.toFixed(1)}px, ${at.y.toFixed(1)}px) translate(-50%, -50%)`;
    };
    frame.robots.forEach((robot, i) => {
      const at = 7 * this.robots.description.base, p = robot.poses;
      const top = this.robots.place(i, [p[at], p[at + 1], p[at + 2] + 0.72]);
      put(this.labels[i].name, this.robots.project(top), frame.scene === this.robots.description.number ? this.robots.description.policies[robot.policy] : 'from another server');
      const force = Math.hypot(...robot.f), moved = 100 * Math.hypot(...robot.moved);
      const arrow = this.arrows.robots[i].push;
      const tip = robot.push && arrow.group.visible ? arrow.tip : this.robots.place(i, robot.p);
      put(this.labels[i].push, robot.push ? this.robots.project(tip.clone().add(new THREE.Vector3(0, 0, 0.07))) : null,
        (isOver(robot) ? '' : `${force.toFixed(1)} N · `) + `${moved.toFixed(1)} cm`);
    });
  }
}

const viewer = new Viewer();
// for tests and the curious: what is shown, and where things are on the screen
window.silcView = {
  viewer,
  frame: () => viewer.drawn,
  onScreen: (robot, p) => {
    const at = viewer.robots.project(viewer.robots.place(robot, p));
    const box = byId('canvas').getBoundingClientRect();
    return at && { x: at.x + box.left, y: at.y + box.top };
  },
};
(recording ? viewer.playRecording(recording) : viewer.begin()).catch((error) => { byId('connection').textContent = `cannot begin: ${error.message}`; setTimeout(() => location.reload(), 3000); });
