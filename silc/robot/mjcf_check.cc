// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/mjcf_check.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "silc/base/error.h"
#include "silc/base/file.h"
#include "silc/base/limits.h"
#include "silc/robot/png_points.h"
#include "silc/robot/xml_tags.h"

namespace silc {
namespace {

namespace fs = std::filesystem;

// What takes MuJoCo time with the square of its number, beside the limits of silc/base/limits.h.
constexpr std::int64_t kMaxModelElements = 20'000;  // of any kind
constexpr std::size_t kMaxElementAttributes = 1'000;

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

// The numbers of a text.
std::vector<double> NumbersIn(const std::string& text) {
  std::vector<double> numbers;
  const char* at = text.c_str();
  for (char* end = nullptr;; at = end) {
    const double value = std::strtod(at, &end);
    if (end == at) return numbers;
    numbers.push_back(value);
  }
}

// An attribute's text, "" where there is none; its numbers, 1 where there are none.
std::string TextOf(const XmlTag& tag, const char* key) {
  const auto found = tag.attributes.find(key);
  return found == tag.attributes.end() ? std::string() : found->second;
}
double NumberOf(const XmlTag& tag, const char* key) { return ProductOf(TextOf(tag, key)); }

// Attributes whose value is how many of something MuJoCo makes, or how often it repeats a step.
struct Counted {
  const char* tag;  // nullptr: of any element
  const char* attribute;
  std::int64_t most;
};
constexpr Counted kCounted[] = {
    {"size", "nkey", kMaxMjcfCount},
    {"size", "nuserdata", kMaxMjcfCount},
    {"size", "nuser_body", kMaxMjcfCount},
    {"size", "nuser_jnt", kMaxMjcfCount},
    {"size", "nuser_geom", kMaxMjcfCount},
    {"size", "nuser_site", kMaxMjcfCount},
    {"size", "nuser_cam", kMaxMjcfCount},
    {"size", "nuser_tendon", kMaxMjcfCount},
    {"size", "nuser_actuator", kMaxMjcfCount},
    {"size", "nuser_sensor", kMaxMjcfCount},
    {"option", "iterations", kMaxMjcfCount},
    {"option", "ls_iterations", kMaxMjcfCount},
    {"option", "noslip_iterations", kMaxMjcfCount},
    {"option", "ccd_iterations", kMaxMjcfCount},
    {"option", "sdf_iterations", kMaxMjcfCount},
    {"option", "sdf_initpoints", kMaxMjcfCount},
    {"numeric", "size", kMaxMjcfCount},
    {"user", "dim", kMaxMjcfCount},
    {"contact", "num", kMaxMjcfCount},
    {nullptr, "actdim", kMaxMjcfCount},
    {nullptr, "nsample", kMaxMjcfCount},
    {"quality", "offsamples", kMaxMjcfCount},
    {"quality", "numslices", kMaxMjcfCount},
    {"quality", "numstacks", kMaxMjcfCount},
    {"quality", "numquads", kMaxMjcfCount},
    {"quality", "shadowsize", kMaxMjcfImage},
    {"global", "offwidth", kMaxMjcfImage},
    {"global", "offheight", kMaxMjcfImage},
    {"camera", "resolution", kMaxMjcfImage},
};

// Points of a mesh that MuJoCo makes of numbers: a grid of the first two, or of the first alone in
// both directions.
double ShapePoints(const std::string& params) {
  const std::vector<double> numbers = NumbersIn(params);
  const double first = numbers.empty() ? 0 : numbers[0];
  return std::max(ProductOf(params), first * first);
}

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string LowerEnding(const std::string& name) {
  std::string ending = fs::path(name).extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

bool IsArchive(const std::string& name) {
  const std::string ending = LowerEnding(name);
  return ending == ".zip" || ending == ".mjz";
}

// What MuJoCo will build.
struct Count {
  double bodies = 0, geoms = 0;
  double elements = 0;  // of any kind, those two included
  double points = 0;    // of height fields and textures
  double shapes = 0;    // points of meshes made of numbers
  double readings = 0;  // numbers that sensors measure and keep
};

// What was read so far, of a model and of those it attaches.
struct Work {
  int files = 0, elements = 0;
  double pixels = 0;  // of the largest camera
  std::size_t xml_bytes = 0, asset_bytes = 0;
  std::vector<fs::path> open;  // from the first file to the one that is read now
};

// One model: a file, what it includes, and the models that it attaches.
class ModelCheck {
 public:
  ModelCheck(std::string path, Work* work)
      : path_(std::move(path)), folder_(fs::path(path_).parent_path()), work_(work) {}

  void Look() {
    // folders of assets and models to attach may be named behind where they are used
    EachTag(path_, true, [&](const std::string& file, const XmlTag& tag) { Prepare(file, tag); });
    EachTag(path_, false, [&](const std::string& file, const XmlTag& tag) { Weigh(file, tag); });
  }

 private:
  // a body, a frame or a replicate whose end has not come yet
  struct Open {
    std::string tag, label;
    double copies = 1;  // of what stands in it, by the replicates around
    Count before;
  };

  [[noreturn]] static void Fail(const std::string& path, int line, const std::string& what) {
    throw ConfigError(path + ":" + std::to_string(line) + ": " + what);
  }

  // Every tag in order, included files in their places, as MuJoCo looks for them.
  template <typename Visit>
  void EachTag(const std::string& path, bool first, const Visit& visit) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(path, error);
    if (std::find(work_->open.begin(), work_->open.end(), real) != work_->open.end()) {
      Fail(path, 1, "includes or attaches itself");
    }
    const std::string text = ReadFile(path, kMaxMjcfBytes);
    if (first && ++work_->files > kMaxMjcfFiles) {
      Fail(path, 1, "more than " + std::to_string(kMaxMjcfFiles) + " files of XML");
    }
    if (first && (work_->xml_bytes += text.size()) > kMaxMjcfBytes) {
      Fail(path, 1, "more than " + std::to_string(kMaxMjcfBytes) + " bytes of XML in all files");
    }
    work_->open.push_back(real);
    XmlTagReader reader(text);
    for (XmlTag tag; reader.Next(&tag);) {
      // MuJoCo's parser holds each against all that are before it
      if (tag.attributes.size() > kMaxElementAttributes) {
        Fail(path,
             tag.line,
             "<" + tag.name + "> has more than " + std::to_string(kMaxElementAttributes) +
                 " attributes");
      }
      if (tag.name != "include") {
        visit(path, tag);
        continue;
      }
      const std::string name = TextOf(tag, "file");
      if (tag.closes || name.empty()) continue;
      for (const fs::path& folder : {folder_, fs::path(path).parent_path()}) {
        const fs::path file = folder / name;
        if (!IsFile(file)) continue;  // MuJoCo complains
        EachTag(file.string(), first, visit);
        break;
      }
    }
    work_->open.pop_back();
  }

  void Prepare(const std::string& path, const XmlTag& tag) {
    if (tag.closes) return;
    if (tag.name == "compiler") {
      for (const char* key : {"assetdir", "meshdir", "texturedir"}) {
        if (!TextOf(tag, key).empty()) folders_.insert(folder_ / TextOf(tag, key));
      }
    } else if (tag.name == "camera") {
      work_->pixels = std::max(work_->pixels, NumberOf(tag, "resolution"));
    } else if (tag.name == "mujoco" && !TextOf(tag, "model").empty()) {
      name_ = TextOf(tag, "model");
    } else if (tag.name == "model" && !TextOf(tag, "file").empty()) {
      const std::string type = TextOf(tag, "content_type");
      if (IsArchive(TextOf(tag, "file")) || (!type.empty() && type != "text/xml")) {
        Fail(path, tag.line, "<model>: only XML is attached");
      }
      const fs::path file = folder_ / TextOf(tag, "file");
      if (!IsFile(file)) return;  // MuJoCo complains
      auto model = std::make_unique<ModelCheck>(file.string(), work_);
      model->Look();
      if (!TextOf(tag, "name").empty()) model->name_ = TextOf(tag, "name");
      models_.push_back(std::move(model));
    }
  }

  void Weigh(const std::string& path, const XmlTag& tag) {
    const bool holds = tag.name == "body" || tag.name == "frame" || tag.name == "replicate";
    if (tag.closes) {
      if (holds && !open_.empty() && open_.back().tag == tag.name) {
        if (!open_.back().label.empty()) named_[open_.back().label] = Inside(open_.back());
        open_.pop_back();
      }
      return;
    }
    const double copies = open_.empty() ? 1 : open_.back().copies;
    double inner = copies;
    const Count before = count_;
    if (tag.name == "replicate") {
      inner *= NumberOf(tag, "count");
      if (inner > kMaxModelBodies) {
        Fail(path, tag.line, "<replicate> makes more than " + std::to_string(kMaxModelBodies));
      }
    } else if (tag.name == "composite" || tag.name == "flexcomp") {
      const double made = copies * NumberOf(tag, "count");
      if (made > kMaxModelBodies) {
        Fail(path,
             tag.line,
             "<" + tag.name + "> makes more than " + std::to_string(kMaxModelBodies) + " bodies");
      }
      count_.bodies += made + copies * Nodes(tag);
    } else if (tag.name == "body") {
      count_.bodies += copies;
    } else if (tag.name == "geom") {
      count_.geoms += copies;
    } else if (tag.name == "attach") {
      const Count attached = Attached(tag);
      count_.bodies += copies * attached.bodies;
      count_.geoms += copies * attached.geoms;
      count_.elements += copies * attached.elements;
      count_.points += copies * attached.points;
      count_.shapes += copies * attached.shapes;
      count_.readings += copies * attached.readings;
    } else if (tag.name == "hfield" || tag.name == "texture") {
      WeighGrid(path, tag);
    } else if (tag.name == "mesh" && !TextOf(tag, "builtin").empty()) {
      const double points = ShapePoints(TextOf(tag, "params"));
      if (!(points <= static_cast<double>(kMaxMjcfShape))) {
        Fail(path,
             tag.line,
             "<mesh builtin>: params make more than " + std::to_string(kMaxMjcfShape) + " points");
      }
      count_.shapes += points;
    } else if (tag.name == "lengthrange") {
      WeighLengthRange(path, tag);
    }
    WeighCounts(path, tag);
    count_.readings += copies * Readings(tag);
    count_.elements += copies;
    ++work_->elements;
    if (tag.name != "model") WeighFiles(path, tag);

    // a chain or a heap of them takes MuJoCo time with the square of their number
    const auto hold = [&](double number, std::int64_t most, const char* what) {
      if (number <= static_cast<double>(most)) return;
      Fail(path, tag.line, "more than " + std::to_string(most) + " " + what);
    };
    hold(count_.bodies, kMaxModelBodies, "bodies");
    hold(count_.geoms, kMaxModelGeoms, "geoms");
    hold(count_.elements, kMaxModelElements, "elements");
    hold(work_->elements, kMaxModelElements, "elements in all files");
    hold(count_.points, kMaxMjcfGrids, "points of height fields and textures");
    hold(count_.shapes, kMaxMjcfShapes, "points of meshes with params");
    hold(count_.readings, kMaxMjcfReadings, "numbers of sensors and their histories");
    if (holds && !tag.empty) open_.push_back({tag.name, TextOf(tag, "name"), inner, before});
  }

  // Since an element was opened, itself included; assets are not part of it.
  Count Inside(const Open& open) const {
    return {count_.bodies - open.before.bodies,
            count_.geoms - open.before.geoms,
            count_.elements - open.before.elements,
            0,
            0,
            0};
  }

  // Of a body or frame of this model; of all of it where there is none of that name.
  Count Named(const std::string& label) const {
    for (const Open& open : open_) {
      if (open.label == label && !label.empty()) return Inside(open);
    }
    const auto found = named_.find(label);
    if (found != named_.end()) return found->second;
    return {count_.bodies, count_.geoms, count_.elements, 0, 0, 0};
  }

  // What an <attach> makes once: of another model, or of this one again.
  Count Attached(const XmlTag& tag) const {
    std::string label = TextOf(tag, "body");
    if (label.empty()) label = TextOf(tag, "frame");
    const std::string name = TextOf(tag, "model");
    if (!tag.attributes.contains("model")) return Named(label);
    Count most;  // of all, where none has that name: MuJoCo may know it by another
    for (const auto& model : models_) {
      Count other = model->Named(label);
      other.points = model->count_.points;  // its assets and sensors come along
      other.shapes = model->count_.shapes;
      other.readings = model->count_.readings;
      if (model->name_ == name) return other;
      most = {std::max(most.bodies, other.bodies),
              std::max(most.geoms, other.geoms),
              std::max(most.elements, other.elements),
              std::max(most.points, other.points),
              std::max(most.shapes, other.shapes),
              std::max(most.readings, other.readings)};
    }
    return most;
  }

  static void WeighCounts(const std::string& path, const XmlTag& tag) {
    for (const Counted& counted : kCounted) {
      if (counted.tag != nullptr && tag.name != counted.tag) continue;
      for (const double number : NumbersIn(TextOf(tag, counted.attribute))) {
        if (number <= static_cast<double>(counted.most)) continue;  // a NaN is not
        Fail(path,
             tag.line,
             "<" + tag.name + ">: " + counted.attribute + " is more than " +
                 std::to_string(counted.most));
      }
    }
  }

  // A range that is not given is looked for with a simulation of its own.
  static void WeighLengthRange(const std::string& path, const XmlTag& tag) {
    const auto number = [&](const char* key, double usual) {
      const std::vector<double> numbers = NumbersIn(TextOf(tag, key));
      return numbers.empty() ? usual : numbers[0];
    };
    const double steps = number("inttotal", 10) / number("timestep", 0.01);  // MuJoCo's own
    if (steps >= 0 && steps <= static_cast<double>(kMaxLengthSteps)) return;
    Fail(path,
         tag.line,
         "<lengthrange>: inttotal is more than " + std::to_string(kMaxLengthSteps) + " timesteps");
  }

  // Bodies at the corners of a flexcomp's cells, and at their middles.
  static double Nodes(const XmlTag& tag) {
    const std::vector<double> cells = NumbersIn(TextOf(tag, "cellcount"));
    if (cells.empty()) return 0;
    double nodes = 1;
    for (const double cell : cells) {
      nodes *= TextOf(tag, "dof") == "quadratic" ? 2 * cell + 1 : cell + 1;
    }
    return std::isfinite(nodes) ? std::max(0.0, nodes) : HUGE_VAL;
  }

  // Numbers that a sensor measures and keeps.
  double Readings(const XmlTag& tag) const {
    // the present and the history
    const double kept = tag.attributes.contains("nsample") ? 1 + NumberOf(tag, "nsample") : 1;
    if (tag.name == "user") return kept * NumberOf(tag, "dim");
    if (tag.name == "contact") return 17 * kept * NumberOf(tag, "num");
    // a number or more for each pixel of a camera, each point of a mesh
    if (tag.name == "rangefinder" && tag.attributes.contains("camera")) {
      return 8 * kept * work_->pixels;
    }
    if (tag.name == "tactile") return 65536 * kept;
    return tag.attributes.contains("nsample") ? 16 * kept : 0;
  }

  // A height field or a texture, by its numbers and by the images it names.
  void WeighGrid(const std::string& path, const XmlTag& tag) {
    const bool field = tag.name == "hfield";
    const bool flat = field || TextOf(tag, "type") == "2d";  // a texture is a cube by default
    AddPoints(path,
              tag,
              field  ? NumberOf(tag, "nrow") * NumberOf(tag, "ncol")
              : flat ? NumberOf(tag, "width") * NumberOf(tag, "height")
                     : 6 * NumberOf(tag, "width") * NumberOf(tag, "width"));
    // MuJoCo writes and copies three channels of these, whatever it has made room for
    const std::string channels = TextOf(tag, "nchannel");
    if (!channels.empty() && channels != "3" && channels != "4" &&
        (!flat || !TextOf(tag, "builtin").empty())) {
      Fail(path, tag.line, "<texture>: nchannel must be 3 or 4 here");
    }
    const std::string type = TextOf(tag, "content_type");
    for (const auto& [key, name] : tag.attributes) {
      if (!key.starts_with("file") || name.empty()) continue;
      const bool png = type.empty() ? LowerEnding(name) == ".png" : type == "image/png";
      const bool raw = field && (type.empty() ? !png : type == "image/vnd.mujoco.hfield");
      if (!png && !raw) {
        Fail(path, tag.line, "<" + tag.name + ">: " + name + ": PNG is read, nothing else");
      }
      for (const fs::path& file : Candidates(path, name)) {
        const std::string bytes = ReadFile(file.string(), kMaxAssetBytes);
        if (raw) {
          // the numbers of rows and columns, then heights
          std::int32_t size[2] = {0, 0};
          if (bytes.size() >= sizeof(size)) std::memcpy(size, bytes.data(), sizeof(size));
          AddPoints(path, tag, static_cast<double>(size[0]) * size[1]);
          continue;
        }
        const PngPoints image = PointsOfPng(bytes, static_cast<double>(kMaxMjcfGrid));
        const double pixels = image.width * image.height;
        // six faces: a file each, or all in a grid
        AddPoints(path,
                  tag,
                  flat            ? pixels
                  : key != "file" ? 6 * pixels
                                  : std::max(pixels, 6 * pixels / NumberOf(tag, "gridsize")));
        if (image.is_png && !image.sound) {
          Fail(path, tag.line, file.string() + ": its pixels are damaged, or more than it says");
        }
      }
    }
  }

  void AddPoints(const std::string& path, const XmlTag& tag, double points) {
    if (points > static_cast<double>(kMaxMjcfGrid)) {
      Fail(path,
           tag.line,
           "<" + tag.name + "> has more than " + std::to_string(kMaxMjcfGrid) + " points");
    }
    count_.points += std::max(0.0, points);
  }

  // Meshes, skins and images by the size of their files.
  void WeighFiles(const std::string& path, const XmlTag& tag) {
    for (const auto& [key, name] : tag.attributes) {
      if (!key.starts_with("file") || name.empty()) continue;
      if (IsArchive(name)) Fail(path, tag.line, "<" + tag.name + ">: archives are not read");
      for (const fs::path& file : Candidates(path, name)) {
        std::error_code error;
        const std::uintmax_t bytes = fs::file_size(file, error);
        if (error) continue;
        if (bytes > kMaxAssetBytes) {
          Fail(path,
               tag.line,
               file.string() + ": " + std::to_string(bytes) + " bytes, more than the limit of " +
                   std::to_string(kMaxAssetBytes));
        }
        if ((work_->asset_bytes += bytes) > static_cast<std::size_t>(kMaxModelBytes)) {
          Fail(path,
               tag.line,
               "more than " + std::to_string(kMaxModelBytes) + " bytes of meshes and images");
        }
      }
    }
  }

  // Every file that MuJoCo may take a name for: it looks in the folders of <compiler>, and may
  // strip the path.
  std::vector<fs::path> Candidates(const std::string& path, const std::string& name) const {
    std::set<fs::path> folders = folders_;
    folders.insert(folder_);
    folders.insert(fs::path(path).parent_path());
    std::set<fs::path> found;
    for (const fs::path& folder : folders) {
      for (const fs::path& file : {folder / name, folder / fs::path(name).filename()}) {
        std::error_code error;
        if (IsFile(file)) found.insert(fs::weakly_canonical(file, error));
      }
    }
    return {found.begin(), found.end()};
  }

  std::string path_;
  fs::path folder_;
  Work* work_;
  std::string name_;                                 // by which it is attached
  std::set<fs::path> folders_;                       // of assets
  std::vector<std::unique_ptr<ModelCheck>> models_;  // to attach
  Count count_;
  std::vector<Open> open_;
  std::map<std::string, Count> named_;  // bodies and frames that are closed
};

}  // namespace

void CheckMjcfFile(const std::string& path) {
  Work work;
  ModelCheck(path, &work).Look();
}

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
