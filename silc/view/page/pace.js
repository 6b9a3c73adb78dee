// SPDX-License-Identifier: Apache-2.0
// How often a picture is drawn, and with how many pixels, so that a slow machine still shows the newest state.
//
// Without a GPU a picture is waited for: its time is known, the next one has the newest state instead of one that stood in a
// queue, and the page rests as long as it drew, since the processor has robots to simulate. With a GPU the browser's own
// rhythm tells how long pictures take.

const SOFTWARE_PIXELS = 400000;         // at most, without a GPU
const FEWEST = 0.3;                     // of the pixels that there could be
const IDLE_MS = 80;                     // between two pictures of the same state, without a GPU: the camera may move
const LOOK = 12;                        // pictures between two decisions
const SLOW_MS = { software: 60, gpu: 28 }, QUICK_MS = { software: 30, gpu: 18 };  // a picture takes that long
const LAPSE_MS = 500;                   // longer than this is a page that was hidden

const median = (values) => values.slice().sort((a, b) => a - b)[values.length >> 1];

export class Pace {
  constructor(software) {
    this.software = software;
    this.share = 1;       // of the pixels that there could be
    this.rested = 0;      // [ms] when the next picture may begin
    this.times = [];      // [ms] of the last pictures
    this.before = null;   // {share, time}: the last step down, until it is known to have helped
    this.useless = false; // fewer pixels do not help: a slow screen, a busy machine
  }

  // Whether it is time for another picture; `fresh`: there is a newer state.
  mayDraw(now, fresh) { return !this.software || now >= (fresh ? this.rested : this.rested + IDLE_MS); }

  // A picture has been drawn. `now` [ms] at its beginning, `cost` [ms] where it was waited for.
  drew(now, cost) {
    const time = this.software ? cost : now - this.last;
    this.last = now;
    if (this.software) this.rested = now + cost + Math.min(cost, LAPSE_MS);
    if (time < LAPSE_MS) this.times.push(time);
    if (this.times.length >= LOOK) { this.decide(median(this.times)); this.times = []; }
  }

  decide(time) {
    const kind = this.software ? 'software' : 'gpu';
    // one step at a time, and back where it did not help
    if (this.before) {
      if (time > 0.9 * this.before.time) { this.share = this.before.share; this.useless = true; }
      this.before = null;
      return;
    }
    if (time > SLOW_MS[kind] && this.share > FEWEST && !this.useless) {
      this.before = { share: this.share, time };
      this.share = Math.max(FEWEST, 0.6 * this.share);
    } else if (time < QUICK_MS[kind]) {
      this.share = Math.min(1, 1.25 * this.share);
      this.useless = false;
    }
  }

  // Pixels of the picture for one of the page, in one direction.
  ratio(width, height, screen) {
    const most = this.software ? Math.sqrt(SOFTWARE_PIXELS / Math.max(1, width * height)) : 2;
    return Math.min(screen, most) * Math.sqrt(this.share);
  }
}
