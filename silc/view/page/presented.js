// SPDX-License-Identifier: Apache-2.0
// When a picture is on the screen, by the browser's own time stamp: for `silc bench view`. Element Timing tells when a
// piece of text was presented; a number that is written together with a picture reaches the screen in the same frame.

const KEPT = 8;  // numbers that stay: the browser tells of them one or two pictures later

export class Presented {
  // tell(sequence, age): the picture of that frame was presented `age` seconds ago
  constructor(parent, tell) {
    this.list = document.createElement('div');
    this.list.className = 'presented';
    parent.append(this.list);
    this.last = null;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        if (entry.renderTime > 0) tell(+entry.identifier, Math.max(0, performance.now() - entry.renderTime) / 1000);
      }
    }).observe({ type: 'element', buffered: true });
  }

  // Call it where a picture is drawn, and nowhere else.
  drawn(sequence) {
    if (sequence === this.last) return;
    this.last = sequence;
    const number = document.createElement('p');
    number.setAttribute('elementtiming', String(sequence));
    number.textContent = String(sequence);
    this.list.append(number);
    if (this.list.children.length > KEPT) this.list.firstChild.remove();
  }
}
