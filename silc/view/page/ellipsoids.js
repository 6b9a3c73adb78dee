// SPDX-License-Identifier: Apache-2.0
// What a force would move, 10 N at first: the image of a sphere of it under the compliance, at the centre of mass and the hands.
// Solid: the robot as it is felt. Wire: the budget; a robot inside its budget reaches at least to it.
import * as THREE from 'three';
import { cssColor } from 'view/scene.js';

const THINNEST = 0.002;           // [m] so that a stiff direction is still seen
const LONGEST = 0.8;              // [m] beyond this the ellipsoid is drawn smaller

const sphere = new THREE.SphereBufferGeometry(1, 24, 14);
const coarse = new THREE.SphereBufferGeometry(1, 14, 8);

// 3 × 3 compliance, row by row, to a matrix that makes the ellipsoid out of the unit sphere.
function toMatrix(C, p, force, matrix) {
  let size = 0;
  for (const c of C) size += c * c;
  const scale = force * Math.min(1, LONGEST / (force * Math.sqrt(size)));
  const e = C.map((c, i) => scale * c + (i % 4 === 0 ? THINNEST : 0));
  matrix.set(e[0], e[1], e[2], p.x, e[3], e[4], e[5], p.y, e[6], e[7], e[8], p.z, 0, 0, 0, 1);
}

export function verdict(worst) { return !Number.isFinite(worst) ? 'unjudged' : worst <= 1 ? 'holds' : 'over'; }

export class Ellipsoids {
  constructor(scene) {
    this.scene = scene;
    this.pairs = [];
    this.force = 10;  // [N]
  }

  build(robots) {
    for (const pair of this.pairs) this.scene.remove(pair.felt, pair.budget);
    this.pairs = [];
    for (let i = 0; i < 3 * robots; ++i) {
      const felt = new THREE.Mesh(sphere, new THREE.MeshLambertMaterial(
        { transparent: true, opacity: 0.6, depthTest: false }));
      const budget = new THREE.Mesh(coarse, new THREE.MeshBasicMaterial(
        { transparent: true, opacity: 0.35, depthTest: false, wireframe: true }));
      felt.renderOrder = 2;
      budget.renderOrder = 3;
      for (const mesh of [felt, budget]) { mesh.matrixAutoUpdate = false; mesh.frustumCulled = false; this.scene.add(mesh); }
      this.pairs.push({ felt, budget });
    }
  }

  show(frame, place) {
    const colors = { holds: cssColor('--holds'), over: cssColor('--over'), unjudged: cssColor('--unjudged') };
    const ink = cssColor('--ink');
    frame.robots.forEach((robot, i) => {
      for (let p = 0; p < 3; ++p) {
        const pair = this.pairs[3 * i + p], point = robot.points[p];
        if (!pair) continue;
        const at = place(i, point.p);
        pair.felt.visible = point.felt.every(Number.isFinite);
        pair.budget.visible = point.budget.every(Number.isFinite);
        if (pair.felt.visible) toMatrix(point.felt, at, this.force, pair.felt.matrix);
        if (pair.budget.visible) toMatrix(point.budget, at, this.force, pair.budget.matrix);
        pair.felt.matrixWorldNeedsUpdate = pair.budget.matrixWorldNeedsUpdate = true;
        pair.felt.material.color.copy(colors[verdict(point.worst)]);
        pair.felt.material.emissive.copy(pair.felt.material.color).multiplyScalar(0.45);
        pair.budget.material.color.copy(ink);
      }
    });
  }
}
