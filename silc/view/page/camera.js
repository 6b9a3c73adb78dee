// SPDX-License-Identifier: Apache-2.0
// A camera that turns about a point and goes along with the robots: mouse, touch and keys.
import * as THREE from 'three';

const FOLLOW = 0.1;  // [s] in which the camera makes up 63 % of what the robots are ahead

export class OrbitCamera {
  constructor(camera) {
    this.camera = camera;
    this.azimuth = 0.35;    // [rad] from +x
    this.elevation = 0.22;  // [rad] over the floor
    this.distance = 3.4;    // [m]
    this.height = 0.68;     // [m] of the point it looks at
    this.side = new THREE.Vector2();  // [m] moved by hand from the robots' centre
    this.centre = new THREE.Vector3();
  }

  // Narrow pictures need more distance for the same robots.
  fit(count, aspect) {
    const width = (count - 1) * 1.3 + 1.0;
    const across = width / (2 * Math.tan((20 * Math.PI) / 180) * Math.max(0.3, aspect));
    this.distance = Math.max(2.7, across + 0.4);
  }

  turn(dx, dy) {
    this.azimuth -= dx;
    this.elevation = Math.min(1.5, Math.max(-0.1, this.elevation + dy));
  }

  zoom(factor) { this.distance = Math.min(15, Math.max(0.6, this.distance * factor)); }

  shift(dx, dy) {  // [m] across the picture
    this.side.x += -Math.sin(this.azimuth) * -dx;
    this.side.y += Math.cos(this.azimuth) * -dx;
    this.height = Math.min(2, Math.max(0, this.height + dy));
  }

  // `passed` [s] since the last time: where pictures are seldom the camera is as quick
  follow(centre, passed) { this.centre.lerp(centre, 1 - Math.exp(-Math.max(0, passed) / FOLLOW)); }

  update() {
    const at = new THREE.Vector3(this.centre.x + this.side.x, this.centre.y + this.side.y, this.height);
    const c = Math.cos(this.elevation);
    this.camera.position.set(
      at.x + this.distance * c * Math.cos(this.azimuth),
      at.y + this.distance * c * Math.sin(this.azimuth),
      Math.max(0.05, at.z + this.distance * Math.sin(this.elevation)));
    this.camera.lookAt(at);
    this.camera.updateMatrixWorld();
  }

  key(key, moves) {
    const step = 0.12;
    if (moves) {
      const across = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key];
      if (across) { this.shift(-0.1 * across[0], 0.1 * across[1]); return true; }
    }
    switch (key) {
      case 'ArrowLeft': this.turn(step, 0); return true;
      case 'ArrowRight': this.turn(-step, 0); return true;
      case 'ArrowUp': this.turn(0, step); return true;
      case 'ArrowDown': this.turn(0, -step); return true;
      case '+': case '=': this.zoom(0.9); return true;
      case '-': this.zoom(1.1); return true;
      default: return false;
    }
  }
}
