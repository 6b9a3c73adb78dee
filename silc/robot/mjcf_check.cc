// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/mjcf_check.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/limits.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

// One tag of an XML text as far as it is needed here: name and attributes.
struct Tag {
  std::string name;
  bool closes = false;  // </name>
  bool empty = false;   // <name/>
  int line = 0;
  std::map<std::string, std::string> attributes;
};

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Goes from tag to tag; comments, declarations and text between are passed over. What is no XML is
// left for MuJoCo to complain about.
class TagReader {
 public:
  explicit TagReader(std::string_view text) : text_(text) {}

  bool Next(Tag* tag) {
    while (true) {
      if (!SkipTo("<")) return false;
      if (text_.substr(at_).starts_with("<!--")) {
        if (!SkipTo("-->")) return false;
        continue;
      }
      if (text_.substr(at_).starts_with("<![CDATA[")) {
        if (!SkipTo("]]>")) return false;
        continue;
      }
      if (text_.substr(at_).starts_with("<?") || text_.substr(at_).starts_with("<!")) {
        if (!SkipTo(">")) return false;
        continue;
      }
      break;
    }
    *tag = Tag();
    tag->line = line_;
    ++at_;
    tag->closes = Take('/');
    tag->name = Word();
    while (at_ < text_.size() && text_[at_] != '>') {
      SkipSpace();
      if (Take('/')) {
        tag->empty = true;
        continue;
      }
      const std::string key = Word();
      SkipSpace();
      if (key.empty() || !Take('=')) {
        if (at_ < text_.size() && text_[at_] != '>' && text_[at_] != '/') Step();
        continue;
      }
      SkipSpace();
      if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) continue;
      const char quote = text_[at_];
      const std::size_t begin = ++at_;
      while (at_ < text_.size() && text_[at_] != quote) Step();
      tag->attributes[key] = std::string(text_.substr(begin, at_ - begin));
      if (at_ < text_.size()) ++at_;
    }
    return true;
  }

 private:
  void Step() { line_ += text_[at_++] == '\n'; }
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void SkipSpace() {
    while (at_ < text_.size() && IsSpace(text_[at_])) Step();
  }
  bool SkipTo(std::string_view what) {
    const std::size_t found = text_.find(what, at_);
    if (found == std::string_view::npos) return false;
    while (at_ < found) Step();
    return true;
  }
  std::string Word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !IsSpace(text_[at_]) &&
           std::string_view("=/><\"'").find(text_[at_]) == std::string_view::npos) {
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

// The product of all numbers in a text, each at least 1: "10 20 1" → 200.
double ProductOf(const std::string& text) {
  double product = 1;
  const char* at = text.c_str();
  for (char* end = nullptr;; at = end) {
    const double value = std::strtod(at, &end);
    if (end == at) return product;
    if (value > 1) product *= value;
  }
}

class FileCheck {
 public:
  explicit FileCheck(fs::path folder) : folder_(std::move(folder)) {}

  void Look(const std::string& path) {
    if (++files_ > kMaxMjcfFiles) Fail(path, 1, "includes more than 1000 files");
    const std::string text = ReadFile(path, kMaxMjcfBytes);
    TagReader reader(text);
    std::vector<double> copies = {1};  // of what stands here, by the replicates around it
    for (Tag tag; reader.Next(&tag);) {
      if (tag.name == "replicate" && tag.closes) {
        if (copies.size() > 1) copies.pop_back();
        continue;
      }
      if (tag.closes) continue;
      const auto number = [&](const char* key) {
        const auto found = tag.attributes.find(key);
        return found == tag.attributes.end() ? 1.0 : ProductOf(found->second);
      };
      if (tag.name == "replicate") {
        const double here = copies.back() * number("count");
        if (here > kMaxModelBodies) {
          Fail(path, tag.line, "<replicate> makes more than " + std::to_string(kMaxModelBodies));
        }
        if (!tag.empty) copies.push_back(here);
      } else if (tag.name == "composite" || tag.name == "flexcomp") {
        const double here = copies.back() * number("count");
        if (here > kMaxModelBodies) {
          Fail(path,
               tag.line,
               "<" + tag.name + "> makes more than " + std::to_string(kMaxModelBodies) + " bodies");
        }
      } else if (tag.name == "body" || tag.name == "geom") {
        // a chain or a heap of them takes MuJoCo time with the square of their number
        const bool body = tag.name == "body";
        double& seen = body ? bodies_ : geoms_;
        const int most = body ? kMaxModelBodies : kMaxModelGeoms;
        if ((seen += copies.back()) > most) {
          Fail(path, tag.line, "more than " + std::to_string(most) + (body ? " bodies" : " geoms"));
        }
      } else if (tag.name == "hfield" || tag.name == "texture") {
        const bool field = tag.name == "hfield";
        const double here =
            field ? number("nrow") * number("ncol") : number("width") * number("height");
        if (here > static_cast<double>(kMaxMjcfGrid)) {
          Fail(path,
               tag.line,
               "<" + tag.name + "> has more than " + std::to_string(kMaxMjcfGrid) + " points");
        }
      } else if (tag.name == "include" && tag.attributes.contains("file")) {
        const fs::path file = folder_ / tag.attributes["file"];
        std::error_code error;
        // what is not there, or a second time, MuJoCo complains about
        if (fs::is_regular_file(file, error) && seen_.insert(file.lexically_normal()).second) {
          Look(file.string());
        }
      }
    }
  }

 private:
  static constexpr int kMaxMjcfFiles = 1000;
  [[noreturn]] static void Fail(const std::string& path, int line, const std::string& what) {
    throw ConfigError(path + ":" + std::to_string(line) + ": " + what);
  }
  fs::path folder_;
  int files_ = 0;
  double bodies_ = 0, geoms_ = 0;  // as they will be built
  std::set<fs::path> seen_;
};

}  // namespace

void CheckMjcfFile(const std::string& path) { FileCheck(fs::path(path).parent_path()).Look(path); }

void CheckModel(const mjModel& m, const std::string& place) {
  const auto fail = [&](const std::string& what) { throw ConfigError(place + ": " + what); };
  if (m.nbody > kMaxModelBodies || m.ngeom > kMaxModelGeoms) {
    fail(std::to_string(m.nbody) + " bodies and " + std::to_string(m.ngeom) + " geoms; at most " +
         std::to_string(kMaxModelBodies) + " and " + std::to_string(kMaxModelGeoms));
  }
  const auto bytes = static_cast<std::int64_t>(mj_sizeModel(&m));
  const auto arena = static_cast<std::int64_t>(m.narena);
  if (bytes > kMaxModelBytes || arena > kMaxModelBytes) {
    fail("takes " + std::to_string(std::max(bytes, arena)) + " bytes, more than " +
         std::to_string(kMaxModelBytes));
  }

  // `low` is what each number must reach; names come from the element the number belongs to
  const auto check = [&](const mjtNum* values,
                         int count,
                         int width,
                         double low,
                         mjtObj type,
                         const std::string& what) {
    for (int i = 0; i < count * width; ++i) {
      if (std::isfinite(values[i]) && values[i] >= low) continue;
      const char* name = type == mjOBJ_UNKNOWN ? nullptr : mj_id2name(&m, type, i / width);
      fail((name != nullptr && *name != '\0' ? std::string(name) + ": " : "") + what + " is " +
           std::to_string(values[i]) +
           (low == 0 ? "; must be finite and not negative" : "; must be a finite number"));
    }
  };
  constexpr double kAny = -HUGE_VAL;
  check(m.opt.gravity, 1, 3, kAny, mjOBJ_UNKNOWN, "gravity");
  check(m.qpos0, 1, static_cast<int>(m.nq), kAny, mjOBJ_UNKNOWN, "the reference position");
  const int bodies = static_cast<int>(m.nbody), joints = static_cast<int>(m.njnt);
  check(m.body_pos, bodies, 3, kAny, mjOBJ_BODY, "its position");
  check(m.body_quat, bodies, 4, kAny, mjOBJ_BODY, "its orientation");
  check(m.body_ipos, bodies, 3, kAny, mjOBJ_BODY, "its centre of mass");
  check(m.body_mass, bodies, 1, 0, mjOBJ_BODY, "its mass");
  check(m.body_inertia, bodies, 3, 0, mjOBJ_BODY, "its inertia");
  check(m.jnt_pos, joints, 3, kAny, mjOBJ_JOINT, "its position");
  check(m.jnt_axis, joints, 3, kAny, mjOBJ_JOINT, "its axis");
  check(m.jnt_range, joints, 2, kAny, mjOBJ_JOINT, "its range");
  check(m.jnt_actfrcrange, joints, 2, kAny, mjOBJ_JOINT, "its range of actuator force");
  check(m.jnt_stiffness, joints, 1, 0, mjOBJ_JOINT, "its stiffness");
  check(m.geom_pos, static_cast<int>(m.ngeom), 3, kAny, mjOBJ_GEOM, "its position");
  check(m.geom_size, static_cast<int>(m.ngeom), 3, kAny, mjOBJ_GEOM, "its size");
  check(m.geom_friction, static_cast<int>(m.ngeom), 3, 0, mjOBJ_GEOM, "its friction");
  check(m.geom_quat, static_cast<int>(m.ngeom), 4, kAny, mjOBJ_GEOM, "its orientation");
  check(m.geom_solref, static_cast<int>(m.ngeom), mjNREF, kAny, mjOBJ_GEOM, "its solref");
  check(m.geom_solimp, static_cast<int>(m.ngeom), mjNIMP, kAny, mjOBJ_GEOM, "its solimp");
  check(m.actuator_gear, static_cast<int>(m.nu), 6, kAny, mjOBJ_ACTUATOR, "its gear");
  check(m.actuator_ctrlrange, static_cast<int>(m.nu), 2, kAny, mjOBJ_ACTUATOR, "its ctrlrange");
  check(m.actuator_forcerange, static_cast<int>(m.nu), 2, kAny, mjOBJ_ACTUATOR, "its forcerange");
  check(m.site_pos, static_cast<int>(m.nsite), 3, kAny, mjOBJ_SITE, "its position");
  for (int dof = 0; dof < m.nv; ++dof) {
    const char* name = mj_id2name(&m, mjOBJ_JOINT, m.dof_jntid[dof]);
    const std::string whose = name != nullptr ? std::string(name) + ": its " : "a joint's ";
    check(m.dof_armature + dof, 1, 1, 0, mjOBJ_UNKNOWN, whose + "armature");
    check(m.dof_damping + dof, 1, 1, 0, mjOBJ_UNKNOWN, whose + "damping");
    check(m.dof_frictionloss + dof, 1, 1, 0, mjOBJ_UNKNOWN, whose + "friction loss");
  }
}

}  // namespace silc
