// SPDX-License-Identifier: Apache-2.0
// The WebSocket: frames in, inputs out, and back again after the server was away.
import { input } from 'view/protocol.js';

const FIRST_WAIT = 0.3, LONGEST_WAIT = 3;  // [s] between attempts

export class Connection {
  // handlers: frame(buffer), words(object), state('open' | 'closed' | 'refused')
  constructor(handlers) {
    this.handlers = handlers;
    this.wait = FIRST_WAIT;
    this.open();
  }

  static query() {
    const token = new URLSearchParams(location.search).get('token');
    return token ? '?token=' + encodeURIComponent(token) : '';
  }

  open() {
    const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
    this.socket = new WebSocket(`${scheme}//${location.host}/ws${Connection.query()}`);
    this.socket.binaryType = 'arraybuffer';
    this.socket.onopen = () => { this.wait = FIRST_WAIT; this.handlers.state('open'); };
    this.socket.onmessage = (event) => {
      if (typeof event.data === 'string') this.handlers.words(JSON.parse(event.data));
      else this.handlers.frame(event.data);
    };
    this.socket.onclose = () => {
      this.handlers.state('closed');
      setTimeout(() => this.open(), 1000 * this.wait);
      this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
    };
  }

  send(bytes) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(bytes);
  }

  // A frame has come: the server may send another.
  acknowledge(sequence) { this.send(input.ack(sequence)); }
}
