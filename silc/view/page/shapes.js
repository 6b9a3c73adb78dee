// SPDX-License-Identifier: Apache-2.0
// A body out of the shapes of its MJCF, as one geometry: a robot of 256 shapes is drawn in 30 calls.
import * as THREE from 'three';

const THIN = 0.06, FINE = 0.01;  // [m] radii below which a shape is small on the screen, and very small

// `parts`: of a circle; a half of them from pole to pole
function capsule(radius, half, parts) {
  // a profile turned about y, then laid along z as MuJoCo's are
  const profile = [], rings = parts / 4;
  for (const [centre, from] of [[-half, -Math.PI / 2], [half, 0]]) {
    for (let i = 0; i <= rings; ++i) {
      const a = from + (i * Math.PI) / (2 * rings);
      profile.push(new THREE.Vector2(Math.max(1e-6, radius * Math.cos(a)), centre + radius * Math.sin(a)));
    }
  }
  const geometry = new THREE.LatheBufferGeometry(profile, parts);
  geometry.rotateX(Math.PI / 2);
  return geometry;
}

// `round`: straight parts of a circle, of thick, thin and fine shapes
function shapeGeometry(shape, meshes, round) {
  const [a, b, c] = shape.size;
  const radius = shape.shape === 'ellipsoid' ? Math.max(a, b, c) : a;
  const parts = radius < FINE ? round.fine : radius < THIN ? round.thin : round.thick;
  switch (shape.shape) {
    case 'sphere': return new THREE.SphereBufferGeometry(a, parts, parts / 2);
    case 'capsule': return capsule(a, b, parts);
    case 'cylinder': { const g = new THREE.CylinderBufferGeometry(a, a, 2 * b, parts); g.rotateX(Math.PI / 2); return g; }
    case 'box': return new THREE.BoxBufferGeometry(2 * a, 2 * b, 2 * c);
    case 'ellipsoid': { const g = new THREE.SphereBufferGeometry(1, parts, parts / 2); g.scale(a, b, c); return g; }
    case 'mesh': {
      const g = new THREE.BufferGeometry();
      g.setAttribute('position', new THREE.Float32BufferAttribute(meshes[shape.mesh].vertices, 3));
      g.setIndex(meshes[shape.mesh].faces);
      g.computeVertexNormals();
      return g;
    }
    default: return null;
  }
}

// All shapes of one body in the body's frame, their colours with the vertices; null where there are none. A round shape
// has `round.thick`, `round.thin` or `round.fine` straight parts around it, multiples of four.
export function bodyGeometry(shapes, meshes, round) {
  const positions = [], normals = [], colors = [], faces = [];
  for (const shape of shapes) {
    const geometry = shapeGeometry(shape, meshes, round);
    if (!geometry) continue;
    geometry.applyMatrix(new THREE.Matrix4().compose(new THREE.Vector3(...shape.pos),
      new THREE.Quaternion(shape.quat[1], shape.quat[2], shape.quat[3], shape.quat[0]), new THREE.Vector3(1, 1, 1)));
    const first = positions.length / 3, { position, normal } = geometry.attributes;
    for (const x of position.array) positions.push(x);
    for (const x of normal.array) normals.push(x);
    for (let v = 0; v < position.count; ++v) colors.push(shape.rgba[0], shape.rgba[1], shape.rgba[2]);
    for (const v of geometry.index.array) faces.push(first + v);
    geometry.dispose();
  }
  if (faces.length === 0) return null;
  const whole = new THREE.BufferGeometry();
  whole.setAttribute('position', new THREE.Float32BufferAttribute(positions, 3));
  whole.setAttribute('normal', new THREE.Float32BufferAttribute(normals, 3));
  whole.setAttribute('color', new THREE.Float32BufferAttribute(colors, 3));
  whole.setIndex(faces);
  return whole;
}
