// SPDX-License-Identifier: Apache-2.0
#include "silc/view/scene.h"

#include <nlohmann/json.hpp>

#include "silc/view/protocol.h"

namespace silc {
namespace {

using nlohmann::json;

json Numbers(const mjtNum* values, int count) {
  return json(std::vector<double>(values, values + count));
}

const char* ShapeName(int type) {
  switch (type) {
    case mjGEOM_SPHERE:
      return "sphere";
    case mjGEOM_CAPSULE:
      return "capsule";
    case mjGEOM_ELLIPSOID:
      return "ellipsoid";
    case mjGEOM_CYLINDER:
      return "cylinder";
    case mjGEOM_BOX:
      return "box";
    case mjGEOM_MESH:
      return "mesh";
    default:
      return nullptr;  // planes and height fields are the world's
  }
}

// MuJoCo's viewers show groups 0 to 2; a robot that has nothing there shows what touches.
int LastGroupShown(const mjModel* model) {
  for (int geom = 0; geom < model->ngeom; ++geom) {
    if (model->geom_bodyid[geom] > 0 && model->geom_group[geom] <= 2) return 2;
  }
  return 3;
}

json Shapes(const mjModel* model) {
  json shapes = json::array();
  const int last_group = LastGroupShown(model);
  for (int geom = 0; geom < model->ngeom; ++geom) {
    const char* shape = ShapeName(model->geom_type[geom]);
    if (shape == nullptr || model->geom_bodyid[geom] == 0) continue;
    if (model->geom_group[geom] > last_group) continue;
    const int material = model->geom_matid[geom];
    const float* rgba =
        material >= 0 ? model->mat_rgba + 4 * material : model->geom_rgba + 4 * geom;
    json entry = {{"body", model->geom_bodyid[geom]},
                  {"shape", shape},
                  {"size", Numbers(model->geom_size + 3 * geom, 3)},
                  {"pos", Numbers(model->geom_pos + 3 * geom, 3)},
                  {"quat", Numbers(model->geom_quat + 4 * geom, 4)},
                  {"rgba", std::vector<float>(rgba, rgba + 4)}};
    if (model->geom_type[geom] == mjGEOM_MESH) entry["mesh"] = model->geom_dataid[geom];
    shapes.push_back(std::move(entry));
  }
  return shapes;
}

json Meshes(const mjModel* model) {
  json meshes = json::array();
  for (int mesh = 0; mesh < model->nmesh; ++mesh) {
    const float* vertices = model->mesh_vert + 3 * model->mesh_vertadr[mesh];
    const int* faces = model->mesh_face + 3 * model->mesh_faceadr[mesh];
    meshes.push_back(
        {{"vertices", std::vector<float>(vertices, vertices + 3 * model->mesh_vertnum[mesh])},
         {"faces", std::vector<int>(faces, faces + 3 * model->mesh_facenum[mesh])}});
  }
  return meshes;
}

}  // namespace

std::string SceneJson(const RobotModel& robot, const SceneLists& lists) {
  const mjModel* model = robot.model();
  json bodies = json::array();
  for (int body = 0; body < model->nbody; ++body) {
    bodies.push_back(
        mj_id2name(model, mjOBJ_BODY, body) != nullptr ? mj_id2name(model, mjOBJ_BODY, body) : "");
  }
  json hands = json::array();
  for (int hand = 0; robot.has_hands() && hand < 2; ++hand) {
    hands.push_back({{"body", robot.hand_body()[hand]},
                     {"pos", Numbers(model->site_pos + 3 * robot.hand_site()[hand], 3)}});
  }
  json pushes = json::array();
  for (const PushButton& button : PushButtons(robot.has_hands())) pushes.push_back(button.name);
  const json scene = {{"version", kProtocolVersion},
                      {"number", lists.number},
                      {"robot", robot.spec().title},
                      {"mass", robot.mass()},
                      {"period", lists.period},
                      {"robots", lists.num_robots},
                      {"bodies", bodies},
                      {"base", robot.base_body()},
                      {"hands", hands},
                      {"shapes", Shapes(model)},
                      {"meshes", Meshes(model)},
                      {"policies", lists.policies},
                      {"budgets", lists.budgets},
                      {"budget_numbers", lists.budget_numbers},
                      {"pushes", pushes}};
  // names come from files: what is no UTF-8 is shown as a replacement
  return scene.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<float> BodyPoses(const RobotModel& robot, const mjData& data) {
  const int num_bodies = robot.model()->nbody;
  std::vector<float> poses;
  poses.reserve(7 * static_cast<std::size_t>(num_bodies));
  for (int body = 0; body < num_bodies; ++body) {
    for (int k = 0; k < 3; ++k) poses.push_back(static_cast<float>(data.xpos[3 * body + k]));
    for (int k = 0; k < 4; ++k) poses.push_back(static_cast<float>(data.xquat[4 * body + k]));
  }
  return poses;
}

}  // namespace silc
