// SPDX-License-Identifier: Apache-2.0
// Puts the page together: frames come in, the newest is drawn and acknowledged.
import * as THREE from 'three';
import { decodeState } from 'view/protocol.js';
import { Connection } from 'view/connection.js';
import { RobotScene } from 'view/scene.js';
import { OrbitCamera } from 'view/camera.js';
import { Ellipsoids } from 'view/ellipsoids.js';
import { Arrows } from 'view/arrows.js';
import { Drag } from 'view/drag.js';
import { Curves } from 'view/curves.js';
import { Controls } from 'view/controls.js';
import { Recorder, fromText } from 'view/recorder.js';

const byId = (id) => document.getElementById(id);
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
    this.onScreen = null; // number of the frame that the last tick drew, not acknowledged yet
    this.built = false;
    const view = {
      robots: this.robots, orbit: this.orbit, ellipsoids: this.ellipsoids, recorder: this.recorder, frame: () => this.drawn,
      live: () => this.recorder.live && this.drawn !== null && !recording,
      send: (bytes) => { if (this.connection) this.connection.send(bytes); }, query: () => Connection.query() };
    this.drag = new Drag(byId('canvas'), view);
    view.drag = this.drag;
    this.controls = new Controls(view);
    this.labels = [];
    requestAnimationFrame((now) => this.tick(now));
  }

  // ---- from the server ----

  async begin() {
    await this.fetchScene();
    this.recorder.fromAddress();
    this.connection = new Connection({
      frame: (buffer) => this.receive(buffer),
      words: (words) => this.listen(words),
      state: (state) => {
        byId('connection').textContent = state === 'open' ? 'connected' : 'the server is away; trying again…';
        document.body.classList.toggle('away', state !== 'open');
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
      this.newest = { buffer, frame, acknowledged: true };
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
    this.built = true;
  }

  receive(buffer) {
    const frame = decodeState(buffer);
    if (!frame) {
      byId('connection').textContent = 'the server speaks another version: load the page again';
      return;
    }
    // after a restart of the server: another scene
    if (this.robots.description && frame.scene !== this.robots.description.number) {
      if (!this.fetching) this.fetching = this.fetchScene().finally(() => { this.fetching = null; });
      this.connection.acknowledge(frame.sequence);
      return;
    }
    // what is overtaken is not drawn, but the curves and the recorder have it; its successor's acknowledgement counts for
    // both. A page that is not seen draws nothing, and records all the same.
    if (document.hidden) this.connection.acknowledge(frame.sequence);
    this.newest = { buffer, frame, acknowledged: document.hidden };
    this.recorder.add(frame.time, buffer);
    this.curves.add(frame);
  }

  listen(words) {
    this.controls.words(words);
    if (words.notice || words.error) this.say(words.notice || 'refused: ' + words.error);
  }

  say(text) {
    const note = document.createElement('p');
    note.textContent = text;
    byId('notices').append(note);
    while (byId('notices').children.length > 4) byId('notices').firstChild.remove();
    setTimeout(() => note.remove(), 8000);
  }

  // ---- to the screen ----

  tick(now) {
    requestAnimationFrame((next) => this.tick(next));
    // what the last tick drew is on the screen by now: the server reads state to pixel from this
    if (this.onScreen !== null && this.connection) this.connection.acknowledge(this.onScreen);
    this.onScreen = null;
    this.robots.resize();
    this.recorder.tick(now);
    const frame = this.recorder.live ? this.newest && this.newest.frame : this.recorder.shown;
    if (frame && this.built && frame.bodies === this.robots.description.bodies.length) this.draw(frame, now);
    if (this.newest && !this.newest.acknowledged && this.connection) {
      this.newest.acknowledged = true;
      this.onScreen = this.newest.frame.sequence;
    }
  }

  draw(frame, now) {
    const place = (i, p) => this.robots.place(i, p);
    if (!this.drawn) this.orbit.centre.copy(this.robots.centre(frame));
    this.drawn = frame;
    this.robots.show(frame);
    this.ellipsoids.show(frame, place);
    this.arrows.show(frame, place);
    this.orbit.follow(this.robots.centre(frame));
    this.orbit.update();
    this.drag.tick();
    this.robots.render(now);
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
      text = `slower than ${frame.speed === 1 ? 'real time' : 'asked'}: ${(100 * frame.achieved).toFixed(0)} %`;
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
      put(this.labels[i].name, this.robots.project(top), this.robots.description.policies[robot.policy]);
      const force = Math.hypot(...robot.f), moved = 100 * Math.hypot(...robot.moved);
      const arrow = this.arrows.robots[i].push;
      const tip = robot.push && arrow.group.visible ? arrow.tip : this.robots.place(i, robot.p);
      put(this.labels[i].push, robot.push ? this.robots.project(tip.clone().add(new THREE.Vector3(0, 0, 0.07))) : null,
        `${force.toFixed(1)} N · ${moved.toFixed(1)} cm`);
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
