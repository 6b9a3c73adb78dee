// SPDX-License-Identifier: Apache-2.0
// The last 30 s of frames, or a whole recording: back and forth, and an address that holds one frame whole.
import { decodeState } from 'view/protocol.js';

const KEPT = 30;  // [s]

const toText = (buffer) => {
  let bytes = '';
  for (const b of new Uint8Array(buffer)) bytes += String.fromCharCode(b);
  return btoa(bytes).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
};

export const fromText = (text) => {
  const bytes = atob(text.replace(/-/g, '+').replace(/_/g, '/'));
  return Uint8Array.from(bytes, (c) => c.charCodeAt(0)).buffer;
};

export class Recorder {
  constructor() {
    this.frames = [];    // {time, buffer}, oldest first
    this.shown = null;   // a frame of the past, decoded; null: live
    this.playing = null; // {from: time, at: now}
    this.kept = KEPT;    // [s] a recording keeps all of its frames
    this.loops = false;  // a recording begins again after its end
  }

  add(time, buffer) {
    const last = this.frames[this.frames.length - 1];
    if (last && time < last.time) this.frames = [];
    if (last && time === last.time) { last.buffer = buffer; return; }
    this.frames.push({ time, buffer });
    while (this.frames[0].time < time - this.kept) this.frames.shift();
  }

  get oldest() { return this.frames.length ? this.frames[0].time : 0; }
  get newest() { return this.frames.length ? this.frames[this.frames.length - 1].time : 0; }
  get live() { return this.shown === null; }

  // `back` seconds before the newest, 0 or less
  scrub(back) {
    if (back >= 0 || this.frames.length === 0) { this.goLive(); return; }
    this.showTime(this.newest + back);
  }

  showTime(time) {
    let best = this.frames[0];
    for (const frame of this.frames) if (frame.time <= time) best = frame;
    this.buffer = best.buffer;
    this.shown = decodeState(best.buffer);
  }

  // from where it is, or from the oldest, at the pace it happened
  play(now) {
    if (this.frames.length === 0) return;
    if (this.live) this.showTime(this.frames[0].time);
    this.playing = { from: this.shown.time, at: now };
  }

  toggle(now) {
    if (this.playing) this.playing = null; else this.play(now);
  }

  tick(now) {
    if (!this.playing) return;
    const time = this.playing.from + (now - this.playing.at) / 1000;
    if (time >= this.newest && this.loops) { this.showTime(this.oldest); this.play(now); } else if (time >= this.newest) this.goLive();
    else this.showTime(time);
  }

  goLive() { this.shown = null; this.playing = null; }

  // The address of what is shown: the frame itself is in it, so no server has to remember.
  link() {
    const buffer = this.live ? this.frames.length && this.frames[this.frames.length - 1].buffer : this.buffer;
    if (!buffer) return location.href;
    return `${location.origin}${location.pathname}${location.search}#moment=${toText(buffer)}`;
  }

  // Shows the frame out of this page's address. False where the address has one that cannot be read.
  fromAddress() {
    const match = /#moment=(.*)/.exec(location.hash);
    if (!match) return true;
    try {
      this.buffer = fromText(match[1]);
      this.shown = decodeState(this.buffer);
    } catch (error) { this.shown = null; }
    return this.shown !== null;
  }
}
