// SPDX-License-Identifier: Apache-2.0
#include "silc/robot/mjcf_check.h"

#include <gtest/gtest.h>

#include <zlib.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>

#include "silc/base/error.h"
#include "silc/robot/robot_model.h"
#include "silc/robot/tiny_biped.h"

namespace silc {
namespace {

std::string LoadError(const std::string& mjcf, const std::string& yaml = kTinyBipedYaml) {
  const TinyBipedFolder files(yaml, mjcf);
  try {
    RobotModel::Load(files.robot_yaml());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string WithWorld(const std::string& inserted) {
  return Changed(kTinyBipedMjcf, "<worldbody>", "<worldbody>" + inserted);
}
std::string WithAsset(const std::string& inserted) {
  return Changed(kTinyBipedMjcf, "<worldbody>", "<asset>" + inserted + "</asset><worldbody>");
}

void ExpectRefused(const std::string& mjcf, const std::string& part) {
  const auto start = std::chrono::steady_clock::now();
  const std::string error = LoadError(mjcf);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << error;
  EXPECT_LT(took.count(), 10) << part;
}

// A line that makes millions is refused before MuJoCo makes them.
TEST(MjcfCheck, FewWordsDoNotMakeMillions) {
  ExpectRefused(WithWorld(R"(<replicate count="2000000" offset="1 0 0"><body><geom size="0.1"/>
                          </body></replicate>)"),
                "tiny.xml:3: <replicate> makes more than 2000");
  ExpectRefused(WithWorld(R"(<replicate count="1000"><replicate count='1000'><body>
                          <geom size="0.1"/></body></replicate></replicate>)"),
                "<replicate> makes more than 2000");
  ExpectRefused(WithAsset(R"(<hfield name="h" nrow="30000" ncol="30000" size="1 1 1 1"/>)"),
                "<hfield> has more than 16777216 points");
  ExpectRefused(WithAsset(R"(<texture name="t" type="2d" builtin="flat" width="90000"
                          height="90000"/>)"),
                "<texture> has more than 16777216 points");
  // the height of a cube is six times its width, whatever is said; a texture is a cube by default
  for (const std::string type : {"type=\"cube\"", "type=\"skybox\"", ""}) {
    ExpectRefused(WithAsset("<texture name=\"t\" " + type + " builtin=\"flat\" width=\"30000\"/>"),
                  "<texture> has more than 16777216 points");
  }
  // MuJoCo reads what stands for a character
  ExpectRefused(WithWorld(R"(<replicate count="&#50;00000&#x30;" offset="1 0 0"><body>
                          <geom size="0.1"/></body></replicate>)"),
                "<replicate> makes more than 2000");
  std::string geoms, bodies;
  for (int k = 0; k < 10'001; ++k) geoms += "<geom size=\"0.1\"/>";
  ExpectRefused(WithWorld(geoms), "more than 10000 geoms");
  for (int k = 0; k < 2'001; ++k) bodies += "<body><geom size=\"0.1\"/></body>";
  ExpectRefused(WithWorld(bodies), "more than 2000 bodies");
  // 1,500 times 8 geoms
  geoms.resize(8 * std::string("<geom size=\"0.1\"/>").size());
  ExpectRefused(WithWorld("<replicate count=\"1500\">" + geoms + "</replicate>"),
                "more than 10000 geoms");
  std::string attributes;
  for (int k = 0; k < 20'000; ++k) attributes += " a" + std::to_string(k) + "=\"1\"";
  ExpectRefused(WithWorld("<geom" + attributes + "/>"), "<geom> has more than 1000 attributes");
  // a heap of anything else, and ten sites 2,000 times
  std::string defaults, sites;
  for (int k = 0; k < 20'001; ++k) defaults += "<default class=\"c" + std::to_string(k) + "\"/>";
  ExpectRefused(
      Changed(kTinyBipedMjcf, "<worldbody>", "<default>" + defaults + "</default><worldbody>"),
      "more than 20000 elements");
  for (int k = 0; k < 10; ++k) sites += "<site/>";
  ExpectRefused(WithWorld("<replicate count=\"2000\">" + sites + "</replicate>"),
                "more than 20000 elements");
  // what stands in a comment makes nothing, and neither does a modest number
  EXPECT_EQ(LoadError(WithWorld(R"(<!-- <replicate count="2000000"> -->
      <replicate count="3" offset="0 0 1"><geom size="0.1" pos="9 9 9"/></replicate>)")),
            "no error");
}

// MuJoCo makes the points and takes their hull; some of these ended the process.
TEST(MjcfCheck, ShapesOfNumbersAreBounded) {
  for (const std::string shape : {"\"supersphere\" params=\"20000 1 1\"",
                                  "\"plate\" params=\"20000 20000\"",
                                  "\"cone\" params=\"20000000 1\"",
                                  "\"wedge\" params=\"&#50;0000 20000 90 90 0\""}) {
    ExpectRefused(WithAsset("<mesh name=\"m\" builtin=" + shape + "/>"),
                  "tiny.xml:3: <mesh builtin>: params make more than 65536 points");
  }
  std::string many;
  for (int k = 0; k < 20; ++k) {
    many += "<mesh name=\"m" + std::to_string(k) + "\" builtin=\"plate\" params=\"250 250\"/>";
  }
  ExpectRefused(WithAsset(many), "more than 1048576 points of meshes with params");
  EXPECT_EQ(LoadError(WithAsset(R"(<mesh name="m" builtin="supersphere" params="30 1 1"/>)")),
            "no error");
}

// A number of ten digits that MuJoCo makes memory or hours of.
TEST(MjcfCheck, NumbersThatAreCountsAreBounded) {
  const auto before_world = [](const std::string& inserted) {
    return Changed(kTinyBipedMjcf, "<worldbody>", inserted + "<worldbody>");
  };
  for (const auto& [element, attribute] : std::map<std::string, std::string>{
           {"<size nkey=\"40000000\"/>", "nkey"},
           {"<size nuserdata=\"400000000\"/>", "nuserdata"},
           {"<size nuser_geom=\"20000000\"/>", "nuser_geom"},
           {"<size nuser_sensor=\"20000000\"/>", "nuser_sensor"},
           {"<option iterations=\"2000000000\" tolerance=\"0\"/>", "iterations"},
           {"<option ls_iterations=\"2000000000\" ls_tolerance=\"0\"/>", "ls_iterations"},
           {"<option noslip_iterations=\"1000000\" noslip_tolerance=\"0\"/>", "noslip_iterations"},
           {"<option ccd_iterations=\"100000000\"/>", "ccd_iterations"},
           {"<sensor><user dim=\"400000000\"/></sensor>", "dim"},
           {"<sensor><contact geom1=\"l_sole\" num=\"100000000\"/></sensor>", "num"},
           {"<sensor><clock nsample=\"400000000\" interval=\"0.01\"/></sensor>", "nsample"},
           {"<custom><numeric name=\"x\" size=\"400000000\" data=\"1\"/></custom>", "size"},
           {"<actuator><general site=\"s\" dyntype=\"user\" actdim=\"400000000\"/></actuator>",
            "actdim"}}) {
    ExpectRefused(before_world(element), ": " + attribute + " is more than 1000");
  }
  // each is allowed, all together are not
  std::string sensors;
  for (int k = 0; k < 10; ++k) {
    sensors += "<user name=\"u" + std::to_string(k) + "\" dim=\"1000\" nsample=\"1000\"/>";
  }
  ExpectRefused(before_world("<sensor>" + sensors + "</sensor>"),
                "more than 4194304 numbers of sensors and their histories");
  ExpectRefused(before_world(R"(<compiler><lengthrange mode="all" inttotal="1e9"/></compiler>)"),
                "<lengthrange>: inttotal is more than 10000 timesteps");
  ExpectRefused(WithWorld(R"(<flexcomp name="f" type="grid" count="3 3 3" spacing="0.1 0.1 0.1"
                          dim="3" dof="trilinear" cellcount="40 40 40" radius="0.01" mass="1"/>)"),
                "more than 2000 bodies");
  EXPECT_EQ(LoadError(before_world(R"(<size nkey="3" nuserdata="10" nuser_geom="2"/>
                                   <option iterations="100" ls_iterations="50"/>
                                   <sensor><user name="u" dim="3"/></sensor>)")),
            "no error");
}

TEST(MjcfCheck, IncludedFilesAreLookedInto) {
  const TinyBipedFolder files(kTinyBipedYaml, WithWorld("<include file=\"more.xml\"/>"));
  WriteFileAtomically(files.folder() + "/more.xml",
                      R"(<mujocoinclude><replicate count="3000000"><geom size="1"/></replicate>
                      </mujocoinclude>)");
  try {
    RobotModel::Load(files.robot_yaml());
    FAIL() << "loaded";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("more.xml:1: <replicate>"), std::string::npos)
        << error.what();
  }
}

// Loads the tiny biped with other files beside it; what went wrong.
std::string LoadErrorWith(const std::string& mjcf,
                          const std::map<std::string, std::string>& files) {
  const TinyBipedFolder folder(kTinyBipedYaml, mjcf);
  for (const auto& [name, bytes] : files) {
    const std::filesystem::path path = std::filesystem::path(folder.folder()) / name;
    std::filesystem::create_directories(path.parent_path());
    WriteFileAtomically(path.string(), bytes);
  }
  try {
    RobotModel::Load(folder.robot_yaml());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

void ExpectIn(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(MjcfCheck, AnIncludeInsideAReplicateIsCountedAsOften) {
  const std::string world = WithWorld(
      "<replicate count=\"1500\" offset=\"0 0 1\"><Include file=\"more.xml\"/></replicate>");
  ExpectIn("more than 10000 geoms",
           LoadErrorWith(world,
                         {{"more.xml",
                           R"(<mujoco><replicate count="1"><geom size="1"/><geom size="1"/>
                              <geom size="1"/><geom size="1"/><geom size="1"/><geom size="1"/>
                              <geom size="1"/></replicate></mujoco>)"}}));
}

// MuJoCo follows such files until its stack is full.
TEST(MjcfCheck, AFileThatIncludesOrAttachesItselfIsRefused) {
  const std::string include = "<mujoco><include file=\"again.xml\"/></mujoco>";
  ExpectIn(
      "again.xml:1: includes or attaches itself",
      LoadErrorWith(WithWorld("<include file=\"sub/again.xml\"/>"), {{"sub/again.xml", include}}));
  ExpectIn(
      "tiny.xml:1: includes or attaches itself",
      LoadErrorWith(
          WithAsset("<model name=\"m\" file=\"other.xml\"/>"),
          {{"other.xml", R"(<mujoco><asset><model name="m" file="tiny.xml"/></asset></mujoco>)"}}));
}

TEST(MjcfCheck, AttachedModelsAreLookedInto) {
  const auto world = [](const std::string& attach) {
    return Changed(
        WithAsset("<model name=\"m\" file=\"other.xml\"/>"), "<worldbody>", "<worldbody>" + attach);
  };
  const auto model = [](const std::string& inside) {
    return "<mujoco model=\"o\"><worldbody><body name=\"b\">" + inside +
           "<geom size=\"0.1\"/></body></worldbody></mujoco>";
  };
  const std::string once = world(R"(<attach model="m" body="b" prefix="x"/>)");
  ExpectIn(
      "other.xml:1: <replicate> makes more than 2000",
      LoadErrorWith(once, {{"other.xml", model(R"(<replicate count="2000000" offset="1 0 0"><body>
                                    <geom size="0.1"/></body></replicate>)")}}));
  // 40 times 100
  std::string many;
  for (int k = 0; k < 40; ++k) {
    many += "<attach model=\"m\" body=\"b\" prefix=\"x" + std::to_string(k) + "\"/>";
  }
  const std::string hundred =
      model(R"(<replicate count="100" offset="0 0 1"><body><geom size="0.1"/></body></replicate>)");
  ExpectIn("more than 2000 bodies", LoadErrorWith(world(many), {{"other.xml", hundred}}));
  EXPECT_EQ(LoadErrorWith(once, {{"other.xml", model("")}}), "no error");
  ExpectIn("only XML is attached",
           LoadErrorWith(WithAsset("<model name=\"m\" file=\"other.zip\"/>"), {}));
  std::string sites;
  for (int k = 0; k < 600; ++k) sites += "<site/>";
  ExpectIn("more than 20000 elements", LoadErrorWith(world(many), {{"other.xml", model(sites)}}));
  // a body of the same model again, each time twice what there was
  std::string doubled = "<body name=\"b0\"><geom size=\"0.1\" pos=\"9 9 9\"/></body>";
  for (int k = 0; k < 12; ++k) {
    const std::string last = "b" + std::to_string(k);
    doubled += "<body name=\"b" + std::to_string(k + 1) + "\">";
    for (const char* prefix : {"l", "r"}) {
      doubled += "<attach body=\"" + last + "\" prefix=\"" + prefix + last + "\"/>";
    }
    doubled += "</body>";
  }
  ExpectIn("more than 2000 bodies", LoadErrorWith(WithWorld(doubled), {}));
}

void Append32(std::uint32_t value, std::string* bytes) {
  for (int shift = 24; shift >= 0; shift -= 8) *bytes += static_cast<char>(value >> shift);
}

// A grey PNG whose header says one size and whose pixels, all black, are as many bytes as one
// likes.
std::string Png(std::uint32_t width, std::uint32_t height, std::size_t pixel_bytes) {
  const std::string pixels(pixel_bytes, '\0');
  uLongf packed_size = compressBound(static_cast<uLong>(pixels.size()));
  std::string packed(packed_size, '\0');
  compress2(reinterpret_cast<Bytef*>(packed.data()),
            &packed_size,
            reinterpret_cast<const Bytef*>(pixels.data()),
            static_cast<uLong>(pixels.size()),
            9);
  packed.resize(packed_size);
  std::string header;
  Append32(width, &header);
  Append32(height, &header);
  header += std::string("\x08\x00\x00\x00\x00", 5);
  std::string png = "\x89PNG\r\n\x1a\n";
  const auto chunk = [&](const std::string& name, const std::string& data) {
    Append32(static_cast<std::uint32_t>(data.size()), &png);
    const std::string body = name + data;
    png += body;
    Append32(static_cast<std::uint32_t>(crc32(
                 0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()))),
             &png);
  };
  chunk("IHDR", header);
  // in two, as large images come
  chunk("IDAT", packed.substr(0, packed.size() / 2));
  chunk("IDAT", packed.substr(packed.size() / 2));
  chunk("IEND", "");
  return png;
}

TEST(MjcfCheck, ImagesAreMeasuredBeforeTheyAreUnpacked) {
  const std::string field = WithAsset(R"(<hfield name="h" file="h.png" size="1 1 1 1"/>)");
  const std::string texture = WithAsset(R"(<texture name="t" type="2d" file="h.png"/>)");
  const std::string faces = WithAsset(R"(<texture name="t" type="cube" fileup="h.png"/>)");
  const std::string large = Png(30000, 30000, 1000);
  ExpectIn("<hfield> has more than 16777216 points", LoadErrorWith(field, {{"h.png", large}}));
  ExpectIn("<texture> has more than 16777216 points", LoadErrorWith(texture, {{"h.png", large}}));
  // six faces of 2000² are too many, one is not
  const std::string medium = Png(2000, 2000, 2001 * 2000);
  ExpectIn("<texture> has more than 16777216 points", LoadErrorWith(faces, {{"h.png", medium}}));
  EXPECT_EQ(LoadErrorWith(texture, {{"h.png", medium}}), "no error");
  // a header of 10² with 40 MB behind it
  ExpectIn("h.png: its pixels are damaged, or more than it says",
           LoadErrorWith(field, {{"h.png", Png(10, 10, 40'000'000)}}));
  // where <compiler> has a folder for them, and in an included file
  const std::string elsewhere = Changed(WithAsset("<include file=\"more.xml\"/>"),
                                        "<worldbody>",
                                        "<compiler assetdir=\"a\"/><worldbody>");
  ExpectIn("more.xml:1: <texture> has more than",
           LoadErrorWith(
               elsewhere,
               {{"a/h.png", large},
                {"more.xml", R"(<mujoco><texture name="t" type="2d" file="h.png"/></mujoco>)"}}));
  EXPECT_EQ(LoadErrorWith(field, {{"h.png", Png(10, 10, 110)}}), "no error");
}

// MuJoCo's own format: rows, columns, heights. The product of these two wraps to 65,536 in 32 bits.
TEST(MjcfCheck, AHeightFieldsOwnNumbersAreHeldAgainstTheLimit) {
  const std::int32_t size[2] = {65536, 65537};
  std::string bytes(8 + 4 * 65536, '\0');
  std::memcpy(bytes.data(), size, sizeof(size));
  ExpectIn("<hfield> has more than 16777216 points",
           LoadErrorWith(WithAsset(R"(<hfield name="h" file="h.bin" size="1 1 1 1"/>)"),
                         {{"h.bin", bytes}}));
}

TEST(MjcfCheck, FormatsThatNobodyMeasuresAreRefused) {
  ExpectIn("k.ktx: PNG is read, nothing else",
           LoadErrorWith(WithAsset(R"(<texture name="t" type="2d" file="k.ktx"/>)"), {}));
  ExpectIn(
      "nchannel must be 3 or 4",
      LoadErrorWith(WithAsset(R"(<texture name="t" builtin="flat" width="9" nchannel="1"/>)"), {}));
  ExpectIn("archives are not read",
           LoadErrorWith(WithAsset(R"(<mesh name="t" file="m.zip"/>)"), {}));
}

// MuJoCo compiles all of these.
TEST(MjcfCheck, NumbersThatAreNoPhysicsAreRefusedByName) {
  ExpectRefused(
      Changed(kTinyBipedMjcf, "actuatorfrcrange=\"-60 60\"", "actuatorfrcrange=\"nan nan\""),
      "l_hip: its range of actuator force is nan");
  ExpectRefused(Changed(kTinyBipedMjcf, "<worldbody>", "<option gravity='0 0 nan'/><worldbody>"),
                "gravity is nan");
  ExpectRefused(
      Changed(kTinyBipedMjcf, "name=\"l_thigh\" pos=\"0 0.1", "name=\"l_thigh\" pos=\"nan 0.1"),
      "l_thigh: its position is nan");
  ExpectRefused(
      Changed(kTinyBipedMjcf, "name=\"r_hip\" axis", "name=\"r_hip\" armature=\"-0.1\" axis"),
      "r_hip: its armature is -0.1");
  ExpectRefused(
      Changed(kTinyBipedMjcf, "name=\"r_hip\" axis", "name=\"r_hip\" damping=\"-3\" axis"),
      "r_hip: its damping is -3");
}

// A floor that is only painted carries nobody; one is put under it.
TEST(MjcfCheck, AVisualFloorIsNoFloor) {
  const TinyBipedFolder files(
      kTinyBipedYaml,
      WithWorld(R"(<geom type="plane" size="1 1 1" contype="0" conaffinity="0"/>)"));
  const RobotModel robot = RobotModel::Load(files.robot_yaml());
  EXPECT_NE(robot.model()->geom_contype[robot.floor_geom()], 0);
}

TEST(MjcfCheck, GainsAndPosesOutOfRangeAreRefused) {
  const auto refused = [](const std::string& from, const std::string& to) {
    return LoadError(kTinyBipedMjcf, Changed(kTinyBipedYaml, from, to));
  };
  EXPECT_NE(refused("hips: 100, knees: 80", "hips: 0, knees: 80").find("0 is outside [1e-06"),
            std::string::npos);
  EXPECT_NE(refused("hips: 100, knees: 80", "hips: 1e300, knees: 80").find("outside"),
            std::string::npos);
  EXPECT_NE(refused("hips: -0.3, knees: 0.6", "hips: -0.3, knees: 1e8").find("outside"),
            std::string::npos);
}

}  // namespace
}  // namespace silc
