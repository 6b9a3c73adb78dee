// SPDX-License-Identifier: Apache-2.0
// Forces as arrows: the push, with its newtons and what it moved, and what the floor does to the feet.
import * as THREE from 'three';

const PUSH_SCALE = 0.012, FOOT_SCALE = 0.0012;  // [m/N]
const LONGEST = 1.2;                            // [m]

class Arrow {
  constructor(scene, color, thickness) {
    const material = new THREE.MeshBasicMaterial({ color, depthTest: false, transparent: true, opacity: 0.9 });
    this.group = new THREE.Group();
    this.shaft = new THREE.Mesh(new THREE.CylinderBufferGeometry(thickness, thickness, 1, 12), material);
    this.head = new THREE.Mesh(new THREE.ConeBufferGeometry(3 * thickness, 8 * thickness, 16), material);
    this.thickness = thickness;
    this.shaft.renderOrder = this.head.renderOrder = 4;
    this.group.add(this.shaft, this.head);
    this.group.visible = false;
    scene.add(this.group);
  }

  // from `tail` along `vector` [m]
  set(tail, vector) {
    const length = Math.min(LONGEST, vector.length());
    this.group.visible = length > 0.01;
    if (!this.group.visible) return;
    const direction = vector.clone().normalize();
    this.group.position.copy(tail);
    this.group.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), direction);
    this.shaft.scale.y = length;
    this.shaft.position.y = length / 2;
    this.head.position.y = length;
    this.tip = tail.clone().addScaledVector(direction, length);
  }
}

export class Arrows {
  constructor(scene) { this.scene = scene; this.robots = []; }

  build(robots) {
    for (const r of this.robots) for (const arrow of [r.push, ...r.feet]) this.scene.remove(arrow.group);
    this.robots = [];
    for (let i = 0; i < robots; ++i) {
      this.robots.push({
        push: new Arrow(this.scene, 0xe6007e, 0.009),
        feet: [new Arrow(this.scene, 0x8a8f98, 0.006), new Arrow(this.scene, 0x8a8f98, 0.006)],
      });
    }
  }

  show(frame, place) {
    frame.robots.forEach((robot, i) => {
      const arrows = this.robots[i];
      if (!arrows) return;
      const f = new THREE.Vector3(...robot.f);
      if (robot.push) arrows.push.set(place(i, robot.p), f.multiplyScalar(PUSH_SCALE));
      else arrows.push.group.visible = false;
      robot.feet.forEach((foot, k) => {
        arrows.feet[k].set(place(i, foot.p), new THREE.Vector3(...foot.f).multiplyScalar(FOOT_SCALE));
      });
    });
  }
}
