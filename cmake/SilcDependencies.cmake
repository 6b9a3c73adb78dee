# SPDX-License-Identifier: Apache-2.0
# Everything silc links, found once, here. `./dev setup` installs what is missing.
find_package(Eigen3 3.4 REQUIRED NO_MODULE)

if(SILC_WITH_TESTS)
  find_package(GTest REQUIRED)
endif()

if(SILC_WITH_TOOLS)
  find_package(fmt REQUIRED)
  find_package(spdlog REQUIRED)
  find_package(yaml-cpp REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(CLI11 REQUIRED)
  find_package(Protobuf REQUIRED)
  find_package(ZLIB REQUIRED)

  # ONNX's schema, compiled here by protoc (silc/policy/onnx): the distribution's libonnx-dev has it, and so
  # has the onnx wheel of the test environment.
  file(GLOB _onnx_wheels ${PROJECT_SOURCE_DIR}/.deps/ort-venv/lib/python3*/site-packages)
  find_file(SILC_ONNX_SCHEMA NAMES onnx/onnx.proto onnx/onnx-ml.proto PATHS ${_onnx_wheels} PATH_SUFFIXES include)
  if(NOT SILC_ONNX_SCHEMA)
    message(FATAL_ERROR "onnx/onnx.proto was not found: install libonnx-dev, or point SILC_ONNX_SCHEMA at it.")
  endif()

  # yaml-cpp before 0.8 names its target without a namespace
  if(NOT TARGET yaml-cpp::yaml-cpp)
    add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
  endif()

  # MuJoCo's wheel holds the library under its versioned name only, so it is linked by path.
  file(STRINGS ${PROJECT_SOURCE_DIR}/tools/setup/mujoco.version SILC_MUJOCO_VERSION LIMIT_COUNT 1)
  set(SILC_MUJOCO_DIR ${PROJECT_SOURCE_DIR}/.deps/mujoco-${SILC_MUJOCO_VERSION}
      CACHE PATH "folder with include/mujoco/mujoco.h and libmujoco.so.*")
  set(_mujoco_library ${SILC_MUJOCO_DIR}/libmujoco.so.${SILC_MUJOCO_VERSION})
  if(NOT EXISTS ${_mujoco_library})
    message(FATAL_ERROR "MuJoCo ${SILC_MUJOCO_VERSION} is not at ${SILC_MUJOCO_DIR}.\n"
                        "Run ./dev setup, or point SILC_MUJOCO_DIR at an unpacked release.")
  endif()
  add_library(mujoco::mujoco SHARED IMPORTED)
  set_target_properties(mujoco::mujoco PROPERTIES
    IMPORTED_LOCATION ${_mujoco_library}
    IMPORTED_SONAME libmujoco.so.${SILC_MUJOCO_VERSION}
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${SILC_MUJOCO_DIR}/include
    INTERFACE_INCLUDE_DIRECTORIES ${SILC_MUJOCO_DIR}/include)
endif()
