// SPDX-License-Identifier: Apache-2.0
// Floor, light, and the robots out of the shapes of their MJCF. z is up, metres.
import * as THREE from 'three';
import { bodyGeometry } from 'view/shapes.js';
import { Pace } from 'view/pace.js';

// straight parts of a circle, with a GPU and without: SwiftShader takes as long for vertices as for pixels
const ROUND = { thick: 24, thin: 24, fine: 12 }, SOFTWARE_ROUND = { thick: 12, thin: 8, fine: 4 };
const SUN = 0.75, SKY = 0.65, TO_SUN = new THREE.Vector3(2, -2.5, 5);
const FLOOR_SHARE = 1 / (SUN * TO_SUN.z / TO_SUN.length() + SKY);  // of the light that falls on the floor
export const SPACING = 1.3;  // [m] between robots that stand side by side

// Where robot `index` of `count` stands on the page; the simulation knows nothing of it.
export function robotOffset(index, count) { return (index - (count - 1) / 2) * SPACING; }

// Words after the # of the address: 'measure' (presented.js), 'shadows', without a GPU, too.
export function addressSays(word) { return location.hash.slice(1).split(',').includes(word); }

export function cssColor(name) {
  return new THREE.Color(getComputedStyle(document.documentElement).getPropertyValue(name).trim());
}

// Whether there is no GPU: then shadows, smooth edges and sixty pictures a second would starve the simulation.
function drawsInSoftware() {
  const gl = document.createElement('canvas').getContext('webgl');
  const info = gl && gl.getExtension('WEBGL_debug_renderer_info');
  const name = info ? gl.getParameter(info.UNMASKED_RENDERER_WEBGL) : '';
  return /swiftshader|llvmpipe|software|basic render/i.test(name);
}

// Lines on the floor, so that walking is seen. Without a GPU the sharper ways to read a texture take half of a picture's time.
function floorTexture(software) {
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
  texture.anisotropy = software ? 1 : 4;
  if (software) Object.assign(texture, { minFilter: THREE.NearestMipmapNearestFilter, magFilter: THREE.NearestFilter });
  return texture;
}

export class RobotScene {
  constructor(canvas) {
    this.scene = new THREE.Scene();
    this.software = drawsInSoftware();
    this.pace = new Pace(this.software);
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: !this.software });
    this.renderer.shadowMap.enabled = !this.software || addressSays('shadows');
    this.renderer.shadowMap.type = THREE.PCFSoftShadowMap;
    this.camera = new THREE.PerspectiveCamera(40, 1, 0.05, 60);
    this.camera.up.set(0, 0, 1);

    this.sun = new THREE.DirectionalLight(0xffffff, SUN);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(2048, 2048);
    Object.assign(this.sun.shadow.camera, { left: -3, right: 3, top: 3, bottom: -3, near: 0.5, far: 12 });
    this.sun.shadow.bias = -0.0005;
    const sky = new THREE.HemisphereLight(0xffffff, 0x777777, SKY);
    sky.position.set(0, 0, 1);  // where it comes from: three.js takes y for up
    this.scene.add(this.sun, this.sun.target, sky);

    // as bright as its colour in the style says; without shadows there is no light to compute
    this.floor = new THREE.Mesh(new THREE.PlaneBufferGeometry(40, 40), this.renderer.shadowMap.enabled
      ? new THREE.MeshLambertMaterial({ color: new THREE.Color().setScalar(FLOOR_SHARE) }) : new THREE.MeshBasicMaterial());
    this.floor.receiveShadow = true;
    this.scene.add(this.floor);
    this.pixel = new Uint8Array(4);
    this.robots = [];  // {group, bodies: [Group], pickable: [Mesh]}
    this.recolor();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.recolor());
  }

  recolor() {
    this.scene.background = cssColor('--back');
    this.scene.fog = new THREE.Fog(this.scene.background, 9, 22);
    this.floor.material.map = floorTexture(this.software);
    this.floor.material.needsUpdate = true;
  }

  build(description) {
    for (const robot of this.robots) {
      this.scene.remove(robot.group);
      for (const mesh of robot.pickable) mesh.geometry.dispose();
    }
    this.description = description;
    this.robots = [];
    const geometries = description.bodies.map((_, body) => bodyGeometry(
      description.shapes.filter((shape) => shape.body === body), description.meshes, this.software ? SOFTWARE_ROUND : ROUND));
    const material = this.software ? new THREE.MeshLambertMaterial({ vertexColors: THREE.VertexColors, fog: false })
      : new THREE.MeshStandardMaterial({ vertexColors: THREE.VertexColors, fog: false, roughness: 0.6, metalness: 0.15 });
    for (let i = 0; i < description.robots; ++i) {
      const group = new THREE.Group();
      group.position.y = robotOffset(i, description.robots);
      const bodies = description.bodies.map(() => { const g = new THREE.Group(); group.add(g); return g; });
      const pickable = [];
      geometries.forEach((geometry, body) => {
        if (!geometry) return;
        const mesh = new THREE.Mesh(geometry, material);
        mesh.castShadow = mesh.receiveShadow = true;
        mesh.userData = { robot: i, body };
        bodies[body].add(mesh);
        pickable.push(mesh);
      });
      this.scene.add(group);
      this.robots.push({ group, bodies, pickable });
    }
  }

  // whether a frame is of these robots
  fits(frame) { return frame.bodies === this.description.bodies.length && frame.robots.length === this.robots.length; }

  show(frame) {
    frame.robots.forEach((robot, i) => {
      const { bodies } = this.robots[i];
      for (let b = 0; b < bodies.length; ++b) {
        const p = robot.poses, at = 7 * b;
        bodies[b].position.set(p[at], p[at + 1], p[at + 2]);
        bodies[b].quaternion.set(p[at + 4], p[at + 5], p[at + 6], p[at + 3]);
      }
    });
    // light and floor go with the robots
    const centre = this.centre(frame);
    this.sun.position.copy(centre).add(TO_SUN);
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
    const ratio = this.pace.ratio(box.width, box.height, window.devicePixelRatio || 1);
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

  render(now) {
    this.renderer.render(this.scene, this.camera);
    // one pixel read: then the picture is done, and its time known
    if (this.software) {
      const gl = this.renderer.getContext();
      gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, this.pixel);
    }
    this.pace.drew(now, performance.now() - now);
  }
}
