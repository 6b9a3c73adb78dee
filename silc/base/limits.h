// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace silc {

// What silc takes of a file before it says no, for every reader in one place; docs/limits.md lists
// them with their reasons. A file beyond a limit is answered with a message that names the limit.
// Sizes are held before the first allocation, so that a wrong path does not eat the memory.

// files of any kind without a limit of their own: silc's documents, what a sweep printed
inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;  // [byte]

// Results of silc eval, and what silc report keeps in its cache: results have some 60 kB. Once
// read, a JSON value of three bytes takes 60.
inline constexpr std::size_t kMaxResultBytes = std::size_t{16} << 20;  // [byte]
// a line of a training's metrics.jsonl: some kilobytes
inline constexpr std::size_t kMaxMetricsLineBytes = std::size_t{1} << 20;  // [byte]

// YAML: a node takes some 500 bytes once parsed. A run's config.yaml with 10,000 motion files has
// 50,000 nodes.
inline constexpr std::size_t kMaxYamlBytes = std::size_t{16} << 20;  // [byte]
inline constexpr int kMaxYamlNodes = 1 << 18;                        // aliases written out
inline constexpr int kMaxYamlDepth = 64;

// ONNX: a policy has some millions of weights, a large one with attention some ten millions.
inline constexpr std::size_t kMaxOnnxBytes = std::size_t{1} << 28;  // [byte] file and external data
inline constexpr std::int64_t kMaxTensorElements = std::int64_t{1} << 24;  // of one tensor
inline constexpr std::int64_t kMaxGraphElements = std::int64_t{1} << 26;   // of all together
// those that depend on the observation: a Jacobian keeps 64 directions of each, in double
inline constexpr std::int64_t kMaxActiveElements = std::int64_t{1} << 19;
inline constexpr std::int64_t kMaxGraphNodes = 20'000;
inline constexpr std::int64_t kMaxGraphWork = std::int64_t{1} << 27;  // multiply-adds per answer
// Protobuf keeps some hundred bytes for an entry that takes two in the file.
inline constexpr std::int64_t kMaxOnnxFields = std::int64_t{1} << 20;  // at all depths
// Metadata is JSON, YAML and lists: some kilobytes, and hundreds where a trainer puts its settings.
inline constexpr std::size_t kMaxMetadataBytes = std::size_t{4} << 20;  // [byte] keys and values
// Shapes and indices are short; a chain of Concat could double them without end.
inline constexpr std::size_t kMaxInts = std::size_t{1} << 16;       // of one integer tensor
inline constexpr std::size_t kMaxTotalInts = std::size_t{1} << 22;  // of all together

// MJCF: what MuJoCo makes of the file, which <replicate> and height fields can make of a few lines.
// XML is counted each time that a file is included or attached; a texture of 4096² is one grid.
inline constexpr std::size_t kMaxMjcfBytes = std::size_t{64} << 20;   // [byte] of XML in all files
inline constexpr int kMaxMjcfFiles = 1'000;                           // of XML
inline constexpr std::size_t kMaxAssetBytes = std::size_t{64} << 20;  // [byte] a mesh, an image
inline constexpr std::int64_t kMaxMjcfGrid = std::int64_t{1} << 24;   // points of a height field
inline constexpr std::int64_t kMaxMjcfGrids = std::int64_t{1} << 26;  // of all, and of textures
// A shape that MuJoCo makes of numbers: it takes the hull of its points, some kilobytes each.
inline constexpr std::int64_t kMaxMjcfShape = std::int64_t{1} << 16;   // points of one
inline constexpr std::int64_t kMaxMjcfShapes = std::int64_t{1} << 20;  // of all
// Sizes of user data, keyframes, sensors, actuators and histories, numbers of iterations: robots
// have some tens, the solver 100. What sensors measure and keep are numbers of 8 bytes.
inline constexpr std::int64_t kMaxMjcfCount = 1'000;
inline constexpr std::int64_t kMaxMjcfReadings = std::int64_t{1} << 22;  // of all sensors
inline constexpr std::int64_t kMaxMjcfImage = 16'384;                    // width of what is drawn
inline constexpr std::int64_t kMaxLengthSteps = 10'000;  // of physics, for an actuator's range
inline constexpr int kMaxModelBodies = 2'000;
inline constexpr int kMaxModelGeoms = 10'000;
inline constexpr std::int64_t kMaxModelBytes = std::int64_t{1} << 30;  // [byte] compiled

// robot.yaml: groups, sets of gains, poses, IMUs, each looked for among its kind
inline constexpr int kMaxRobotNames = 1'000;
// terms of an observation: a policy has some ten
inline constexpr std::size_t kMaxTerms = 1'000;

// Numbers of robots and layouts: no servo of a humanoid comes near these, a slipped digit does.
inline constexpr double kMinKp = 1e-6;   // [N·m/rad] a joint without a spring holds nothing
inline constexpr double kMaxKp = 1e5;    // [N·m/rad]
inline constexpr double kMaxKd = 1e4;    // [N·m·s/rad]
inline constexpr double kMaxAngle = 10;  // [rad] of a pose
inline constexpr double kMaxBasePosition = 1e6;  // [m] of a recorded state
inline constexpr double kMaxSpeed = 1e4;         // [m/s], [rad/s] of a recorded state
inline constexpr double kMaxCommand = 1e3;       // [m/s], [rad/s], [m] in a log
inline constexpr double kMinEffort = 1e-3;       // [N·m]
inline constexpr double kMaxEffort = 1e5;        // [N·m]
inline constexpr double kMaxActionScale = 100;   // [rad] per unit of the action
// a term's scale, offset and constants, in any unit; float keeps seven digits
inline constexpr double kMaxTermNumber = 1e6;
inline constexpr double kMinClockPeriod = 1e-3;  // [s]
inline constexpr double kMaxClockPeriod = 1e3;   // [s]

// .npz and .npy; arrays are counted as doubles, 8 bytes a number, whatever the file has
inline constexpr std::size_t kMaxNpzBytes = std::size_t{1} << 30;       // [byte] the file
inline constexpr std::size_t kMaxNpzArrayBytes = std::size_t{1} << 30;  // [byte] one array
inline constexpr std::size_t kMaxNpzTotalBytes = std::size_t{1} << 31;  // [byte] all arrays
inline constexpr int kMaxNpzArrays = 4096;
inline constexpr std::size_t kMaxNpyHeaderBytes = 65535;  // [byte] NumPy itself needs about 100
inline constexpr std::size_t kMaxNpyAxes = 64;            // NumPy's own limit

// motions: ten hours at 30 frames per second
inline constexpr std::size_t kMaxMotionBytes = std::size_t{1} << 30;  // [byte]
inline constexpr int kMaxMotionFrames = 1 << 20;
// of all that a training takes, at the control period: 46 hours at 50 per second, as all of AMASS
inline constexpr int kMaxMotionTable = 1 << 23;
// recorded states: three hours at 50 per second, in all chunks of a log
inline constexpr int kMaxStates = 1 << 19;

// scripts of a simulated robot
inline constexpr std::size_t kMaxScriptBytes = std::size_t{1} << 20;  // [byte]
inline constexpr std::size_t kMaxTypedBytes = 4096;                   // [byte] of a typed line
inline constexpr double kMaxScriptTime = 1e6;                         // [s]
inline constexpr double kMaxPushForce = 1e5;                          // [N] each component
inline constexpr double kMaxPushDuration = 1e3;                       // [s]

// Checkpoints are silc's own and grow with the robots: 4.2 kB each. This is a disk, not a limit.
inline constexpr std::size_t kMaxCheckpointBytes = std::size_t{1} << 40;  // [byte]

}  // namespace silc
