// SPDX-License-Identifier: Apache-2.0
// Floor, light, and the robots out of the shapes of their MJCF. z is up, metres.
import * as THREE from 'three';

const SOFTWARE_MS = 80;      // between two pictures without a GPU: the processor has robots to simulate
export const SPACING = 1.3;  // [m] between robots that stand side by side

// Where robot `index` of `count` stands on the page; the simulation knows nothing of it.
export function robotOffset(index, count) { return (index - (count - 1) / 2) * SPACING; }

function capsule(radius, half) {
  // a profile turned about y, then laid along z as MuJoCo's are
  const profile = [];
  for (let i = 0; i <= 8; ++i) {
    const a = -Math.PI / 2 + (i * Math.PI) / 16;
    profile.push(new THREE.Vector2(Math.max(1e-6, radius * Math.cos(a)), -half + radius * Math.sin(a)));
  }
  for (let i = 0; i <= 8; ++i) {
    const a = (i * Math.PI) / 16;
    profile.push(new THREE.Vector2(Math.max(1e-6, radius * Math.cos(a)), half + radius * Math.sin(a)));
  }
  const geometry = new THREE.LatheBufferGeometry(profile, 20);
  geometry.rotateX(Math.PI / 2);
  return geometry;
}

function shapeGeometry(shape, meshes) {
  const [a, b, c] = shape.size;
  switch (shape.shape) {
    case 'sphere': return new THREE.SphereBufferGeometry(a, 24, 16);
    case 'capsule': return capsule(a, b);
    case 'cylinder': { const g = new THREE.CylinderBufferGeometry(a, a, 2 * b, 28); g.rotateX(Math.PI / 2); return g; }
    case 'box': return new THREE.BoxBufferGeometry(2 * a, 2 * b, 2 * c);
    case 'ellipsoid': { const g = new THREE.SphereBufferGeometry(1, 24, 16); g.scale(a, b, c); return g; }
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

export function cssColor(name) {
  return new THREE.Color(getComputedStyle(document.documentElement).getPropertyValue(name).trim());
}

// Whether there is no GPU: then shadows, smooth edges and sixty pictures a second would starve the simulation.
function drawsInSoftware() {
  const gl = document.createElement('canvas').getContext('webgl');
  const info = gl && gl.getExtension('WEBGL_debug_renderer_info');
  const name = info ? gl.getParameter(info.UNMASKED_RENDERER_WEBGL) : '';
  return /swiftshader|llvmpipe|software/i.test(name);
}

// A little checkerboard, so that walking is seen.
function floorTexture() {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 64;
  const pen = canvas.getContext('2d');
  const css = getComputedStyle(document.documentElement);
  pen.fillStyle = css.getPropertyValue('--floor');
  pen.fillRect(0, 0, 64, 64);
  pen.strokeStyle = css.getPropertyValue('--grid');
  pen.lineWidth = 1.5;
  pen.strokeRect(0, 0, 64, 64);
  const texture = new THREE.CanvasTexture(canvas);
  texture.wrapS = texture.wrapT = THREE.RepeatWrapping;
  texture.repeat.set(80, 80);
  texture.anisotropy = 4;
  return texture;
}

export class RobotScene {
  constructor(canvas) {
    this.scene = new THREE.Scene();
    this.software = drawsInSoftware();
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: !this.software });
    this.renderer.shadowMap.enabled = !this.software || location.hash.includes('shadows');
    this.renderer.shadowMap.type = THREE.PCFSoftShadowMap;
    this.camera = new THREE.PerspectiveCamera(40, 1, 0.05, 60);
    this.camera.up.set(0, 0, 1);

    this.sun = new THREE.DirectionalLight(0xffffff, 0.75);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(2048, 2048);
    Object.assign(this.sun.shadow.camera, { left: -3, right: 3, top: 3, bottom: -3, near: 0.5, far: 12 });
    this.sun.shadow.bias = -0.0005;
    this.scene.add(this.sun, this.sun.target, new THREE.HemisphereLight(0xffffff, 0x777777, 0.65));

    this.floor = new THREE.Mesh(new THREE.PlaneBufferGeometry(40, 40), new THREE.MeshLambertMaterial());
    this.floor.receiveShadow = true;
    this.scene.add(this.floor);
    this.robots = [];  // {group, bodies: [Group], pickable: [Mesh]}
    this.recolor();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.recolor());
  }

  recolor() {
    this.scene.background = cssColor('--back');
    this.scene.fog = new THREE.Fog(this.scene.background, 9, 22);
    this.floor.material.map = floorTexture();
    this.floor.material.needsUpdate = true;
  }

  build(description) {
    for (const robot of this.robots) this.scene.remove(robot.group);
    this.description = description;
    this.robots = [];
    for (let i = 0; i < description.robots; ++i) {
      const group = new THREE.Group();
      group.position.y = robotOffset(i, description.robots);
      const bodies = description.bodies.map(() => { const g = new THREE.Group(); group.add(g); return g; });
      const pickable = [];
      for (const shape of description.shapes) {
        const geometry = shapeGeometry(shape, description.meshes);
        if (!geometry) continue;
        const color = new THREE.Color(shape.rgba[0], shape.rgba[1], shape.rgba[2]);
        const material = new THREE.MeshStandardMaterial({ color, roughness: 0.6, metalness: 0.15 });
        const mesh = new THREE.Mesh(geometry, material);
        mesh.position.fromArray(shape.pos);
        mesh.quaternion.set(shape.quat[1], shape.quat[2], shape.quat[3], shape.quat[0]);
        mesh.castShadow = mesh.receiveShadow = true;
        mesh.userData = { robot: i, body: shape.body };
        bodies[shape.body].add(mesh);
        pickable.push(mesh);
      }
      this.scene.add(group);
      this.robots.push({ group, bodies, pickable });
    }
  }

  show(frame) {
    frame.robots.forEach((robot, i) => {
      if (!this.robots[i]) return;
      const { bodies } = this.robots[i];
      for (let b = 0; b < bodies.length; ++b) {
        const p = robot.poses, at = 7 * b;
        bodies[b].position.set(p[at], p[at + 1], p[at + 2]);
        bodies[b].quaternion.set(p[at + 4], p[at + 5], p[at + 6], p[at + 3]);
      }
    });
    // light and floor go with the robots
    const centre = this.centre(frame);
    this.sun.position.set(centre.x + 2, centre.y - 2.5, 5);
    this.sun.target.position.copy(centre);
    this.floor.position.set(Math.round(centre.x * 2) / 2, Math.round(centre.y * 2) / 2, 0);
  }

  // between the robots' bases
  centre(frame) {
    const sum = new THREE.Vector3();
    frame.robots.forEach((robot, i) => {
      const at = 7 * this.description.base;
      sum.x += robot.poses[at];
      sum.y += robot.poses[at + 1] + robotOffset(i, frame.robots.length);
    });
    return sum.divideScalar(Math.max(1, frame.robots.length));
  }

  // a point of robot i, as the simulation has it, on the page's floor
  place(i, p) { return new THREE.Vector3(p[0], p[1] + robotOffset(i, this.robots.length), p[2]); }

  resize() {
    const box = this.renderer.domElement.parentElement.getBoundingClientRect();
    const most = this.software ? Math.sqrt(400000 / Math.max(1, box.width * box.height)) : 2;
    const ratio = Math.min(window.devicePixelRatio || 1, most);
    if (this.width === box.width && this.height === box.height && this.ratio === ratio) return;
    Object.assign(this, { width: box.width, height: box.height, ratio });
    this.renderer.setPixelRatio(ratio);
    this.renderer.setSize(box.width, box.height, false);
    this.camera.aspect = box.width / Math.max(1, box.height);
    this.camera.updateProjectionMatrix();
  }

  // where a point of the page's world is on the canvas [px], or null behind the camera
  project(point) {
    const v = point.clone().project(this.camera);
    if (v.z > 1) return null;
    return { x: ((v.x + 1) / 2) * this.width, y: ((1 - v.y) / 2) * this.height };
  }

  // Draws, or does nothing where the last picture is too young for a machine that draws in software.
  render(now) {
    if (this.software && now - (this.last || 0) < SOFTWARE_MS) return;
    this.last = now;
    this.renderer.render(this.scene, this.camera);
  }
}
