// SPDX-License-Identifier: Apache-2.0
#include "silc/report/picture.h"

#include <algorithm>
#include <exception>

#include "silc/base/check.h"
#include "silc/report/offscreen.h"
#include "silc/robot/mujoco_handles.h"

namespace silc {
namespace {

constexpr int kMaxGeoms = 2000;                             // in a scene
constexpr float kArrowColor[4] = {0.90f, 0.32f, 0.05f, 1};  // stands out from shell and floor
constexpr double kArrowRadius = 0.014;                      // [m]

}  // namespace

struct Painter::Impl {
  // in this order: MuJoCo's context is freed while OpenGL is still current
  std::unique_ptr<OffscreenContext> context;
  MjModelPtr model;
  int width = 0, height = 0;
  mjvScene scene;
  mjrContext render;

  Impl() {
    mjv_defaultScene(&scene);
    mjr_defaultContext(&render);
  }
  ~Impl() {
    mjr_freeContext(&render);
    mjv_freeScene(&scene);
  }
};

Painter::Painter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Painter::~Painter() = default;
const char* Painter::backend() const { return impl_->context->name(); }

std::unique_ptr<Painter> Painter::Create(const mjModel& model,
                                         int width,
                                         int height,
                                         std::string* why) {
  InstallMujocoHandlers();  // an OpenGL too old for MuJoCo is an error to be told, not an exit
  auto impl = std::make_unique<Impl>();
  impl->context = OffscreenContext::Create(width, height, why);
  if (!impl->context) return nullptr;
  impl->model.reset(mj_copyModel(nullptr, &model));
  impl->width = width;
  impl->height = height;
  auto& visual = impl->model->vis;
  visual.global.offwidth = width;
  visual.global.offheight = height;
  visual.quality.shadowsize = 4096;
  visual.quality.offsamples = 8;
  std::fill_n(visual.headlight.ambient, 3, 0.30f);
  std::fill_n(visual.headlight.diffuse, 3, 0.26f);
  std::fill_n(visual.headlight.specular, 3, 0.10f);
  try {
    mjv_makeScene(impl->model.get(), &impl->scene, kMaxGeoms);
    mjr_makeContext(impl->model.get(), &impl->render, mjFONTSCALE_100);
    mjr_setBuffer(mjFB_OFFSCREEN, &impl->render);
  } catch (const std::exception& error) {
    *why = std::string(impl->context->name()) +
           " is there, but MuJoCo cannot draw with it: " + error.what();
    return nullptr;
  }
  if (impl->render.currentBuffer != mjFB_OFFSCREEN) {
    *why = std::string(impl->context->name()) + " is there, but has no framebuffers to draw into";
    return nullptr;
  }
  return std::unique_ptr<Painter>(new Painter(std::move(impl)));
}

Image Painter::Draw(const mjData& data, const View& view, const std::vector<Arrow>& arrows) {
  Impl& gl = *impl_;
  mjvOption option;
  mjv_defaultOption(&option);
  std::fill_n(option.geomgroup, mjNGROUP, 0);
  option.geomgroup[0] = option.geomgroup[1] = option.geomgroup[2] = 1;
  std::fill_n(option.sitegroup, mjNGROUP, 0);

  mjvCamera camera;
  mjv_defaultFreeCamera(gl.model.get(), &camera);
  std::copy_n(view.look_at_W.data(), 3, camera.lookat);
  camera.distance = view.distance;
  camera.azimuth = view.azimuth;
  camera.elevation = view.elevation;

  // MuJoCo's signature is not const; drawing changes nothing in the state
  mjv_updateScene(
      gl.model.get(), const_cast<mjData*>(&data), &option, nullptr, &camera, mjCAT_ALL, &gl.scene);
  // a robot that walked away takes its sun along: shadows are drawn near the light's place alone
  for (int i = 0; i < gl.scene.nlight; ++i) {
    for (int k = 0; k < 2; ++k) gl.scene.lights[i].pos[k] += static_cast<float>(view.look_at_W[k]);
  }
  for (const Arrow& arrow : arrows) {
    SILC_CHECK(gl.scene.ngeom < gl.scene.maxgeom);
    mjvGeom* geom = &gl.scene.geoms[gl.scene.ngeom++];
    const Eigen::Vector3d tip = arrow.point_W + arrow.metres_per_newton * arrow.force_W;
    mjv_initGeom(geom, mjGEOM_ARROW, nullptr, nullptr, nullptr, kArrowColor);
    mjv_connector(geom, mjGEOM_ARROW, kArrowRadius, arrow.point_W.data(), tip.data());
    geom->emission = 0.25f;  // not lost in the robot's own shadow
  }
  gl.scene.flags[mjRND_SHADOW] = 1;
  gl.scene.flags[mjRND_REFLECTION] = 0;
  const mjrRect viewport{0, 0, gl.width, gl.height};
  mjr_render(viewport, &gl.scene, &gl.render);

  Image image{gl.width, gl.height, {}};
  std::vector<std::uint8_t> bottom_up(std::size_t(3) * std::size_t(gl.width) *
                                      std::size_t(gl.height));
  mjr_readPixels(bottom_up.data(), nullptr, viewport, &gl.render);
  const auto stride = std::ptrdiff_t(3) * gl.width;
  image.rgb.reserve(bottom_up.size());
  for (int y = gl.height - 1; y >= 0; --y)
    image.rgb.insert(
        image.rgb.end(), bottom_up.begin() + y * stride, bottom_up.begin() + (y + 1) * stride);
  return image;
}

}  // namespace silc
