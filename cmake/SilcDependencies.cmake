# SPDX-License-Identifier: Apache-2.0
# Everything silc links, found once, here. `./dev setup` installs what is missing.
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(Threads REQUIRED)

# Cyclone DDS, for robots on the network; its types are compiled by idlc.
set(SILC_HAS_DDS OFF)
if(SILC_WITH_DDS)
  find_package(CycloneDDS QUIET)
  find_program(SILC_IDLC idlc)
  if(CycloneDDS_FOUND AND SILC_IDLC)
    set(SILC_HAS_DDS ON)
    enable_language(C)
  else()
    message(STATUS "Cyclone DDS was not found: silc is built without a link to robots. Install cyclonedds-dev and "
                   "cyclonedds-tools; -DSILC_WITH_DDS=OFF says so quietly.")
  endif()
endif()

if(SILC_WITH_TESTS)
  find_package(GTest REQUIRED)
endif()

if(SILC_WITH_FILES)
  find_package(fmt REQUIRED)
  find_package(yaml-cpp REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(Protobuf REQUIRED)

  # ONNX's schema, compiled here by protoc (silc/policy/onnx): the distribution's libonnx-dev has
  # it, and so has the onnx wheel of the test environment.
  file(GLOB _onnx_wheels ${PROJECT_SOURCE_DIR}/.deps/ort-venv/lib/python3*/site-packages)
  find_file(SILC_ONNX_SCHEMA NAMES onnx/onnx.proto onnx/onnx-ml.proto PATHS ${_onnx_wheels} PATH_SUFFIXES include)
  if(NOT SILC_ONNX_SCHEMA)
    message(FATAL_ERROR "onnx/onnx.proto was not found: install libonnx-dev, or point SILC_ONNX_SCHEMA at it.")
  endif()

  # The viewer: Boost.Beast's headers and three.js. Without either it is left out.
  set(SILC_HAS_VIEW OFF)
  find_path(SILC_BOOST_DIR boost/beast/websocket.hpp)
  find_file(SILC_THREE_MODULE three.module.js PATHS /usr/share/javascript/three /usr/share/nodejs/three/build
            PATH_SUFFIXES build NO_DEFAULT_PATH)
  if(SILC_BOOST_DIR AND SILC_THREE_MODULE)
    set(SILC_HAS_VIEW ON)
    enable_language(ASM)
    add_library(silc_boost INTERFACE)
    target_include_directories(silc_boost SYSTEM INTERFACE ${SILC_BOOST_DIR})
    # no library of Boost's is linked
    target_compile_definitions(silc_boost INTERFACE BOOST_ALL_NO_LIB BOOST_ERROR_CODE_HEADER_ONLY)
    # g++ warns that TSan does not see Asio's fences. They matter to none: handlers change threads
    # under the scheduler's mutex, which TSan sees.
    if(SILC_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(silc_boost INTERFACE -Wno-tsan)
    endif()
  else()
    message(STATUS "Boost.Beast's headers or three.js were not found: silc is built without its viewer. Install "
                   "libboost-dev and libjs-three, or point SILC_BOOST_DIR and SILC_THREE_MODULE at them.")
  endif()

  # yaml-cpp before 0.8 names its target without a namespace
  if(NOT TARGET yaml-cpp::yaml-cpp)
    add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
  endif()

endif()

if(SILC_WITH_TOOLS)
  find_package(spdlog REQUIRED)
  find_package(CLI11 REQUIRED)
  find_package(ZLIB REQUIRED)

  # stb: headers without a CMake package
  find_path(SILC_STB_DIR stb_image_write.h PATH_SUFFIXES stb)
  if(NOT SILC_STB_DIR)
    message(FATAL_ERROR "stb_image_write.h was not found: install libstb-dev, or point SILC_STB_DIR at its folder.")
  endif()
  add_library(silc_stb INTERFACE)
  target_include_directories(silc_stb SYSTEM INTERFACE ${SILC_STB_DIR})

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

if(SILC_WITH_CUDA)
  set(SILC_CUDA_ARCHITECTURES 90 CACHE STRING "GPU architectures, as CMake's CUDA_ARCHITECTURES takes them")
  set(CMAKE_CUDA_ARCHITECTURES ${SILC_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  # CMake 3.25 does not know that a newer nvcc can
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
endif()

# LibTorch: the distribution's (CPU), or the one inside the user's Python:
#   -DCMAKE_PREFIX_PATH=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')
# Its package sets flags for the whole directory; they are kept on a target of ours instead.
set(SILC_HAS_TORCH OFF)
if(SILC_WITH_TORCH AND SILC_WITH_TOOLS)
  set(_cxx_flags "${CMAKE_CXX_FLAGS}")
  set(_cuda_flags "${CMAKE_CUDA_FLAGS}")
  find_package(Torch QUIET)
  set(CMAKE_CXX_FLAGS "${_cxx_flags}")
  set(CMAKE_CUDA_FLAGS "${_cuda_flags}")
  if(NOT Torch_FOUND)
    message(STATUS "LibTorch was not found: silc is built without its trainer. Install libtorch-dev and "
                   "libopenblas0-pthread, or point CMAKE_PREFIX_PATH at one; -DSILC_WITH_TORCH=OFF says so quietly.")
  elseif("${TORCH_CXX_FLAGS}" MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
    message(WARNING "LibTorch at ${TORCH_INSTALL_PREFIX} is built for the old C++ ABI and cannot be linked with the "
                    "other libraries: silc is built without its trainer. PyTorch 2.7 and newer have the new ABI.")
  elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND "${Torch_VERSION}" VERSION_LESS 2 AND NOT SILC_TIDY)
    # its List.h holds vectors of a type not complete yet, which clang instantiates too early in
    # C++20
    message(STATUS "LibTorch ${Torch_VERSION} does not compile as C++20 under clang: silc is built without its "
                   "trainer here. Use g++, or LibTorch 2.")
  else()
    set(SILC_HAS_TORCH ON)
    if(SILC_WITH_CUDA AND NOT TARGET torch_cuda)
      message(FATAL_ERROR "LibTorch at ${TORCH_INSTALL_PREFIX} has no CUDA. Point CMAKE_PREFIX_PATH at one that has, "
                          "or build the physics alone with -DSILC_WITH_TORCH=OFF.")
    endif()
    add_library(silc_torch INTERFACE)
    target_link_libraries(silc_torch INTERFACE ${TORCH_LIBRARIES})
    target_include_directories(silc_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
    if(SILC_TIDY AND "${Torch_VERSION}" VERSION_LESS 2)
      # clang can read it this way, and need not link
      target_compile_options(silc_torch INTERFACE -include ${PROJECT_SOURCE_DIR}/tools/tidy/vector_not_constexpr.h)
    endif()
    # PyTorch's headers come with an fmt of their own and no library to it
    list(GET TORCH_INCLUDE_DIRS 0 _torch_include)
    if(EXISTS ${_torch_include}/fmt/format.h AND NOT _torch_include IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      target_compile_definitions(silc_torch INTERFACE FMT_HEADER_ONLY)
    endif()

    # Training over several processes: c10d is in LibTorch, but its headers want those of Gloo
    # (CPUs) or NCCL (GPUs).
    set(SILC_C10D_DEFINITIONS "")
    set(SILC_C10D_INCLUDES "")
    set(_c10d ${_torch_include}/torch/csrc/distributed/c10d)
    if(SILC_WITH_CUDA)
      find_path(SILC_NCCL_DIR nccl.h HINTS ${TORCH_INSTALL_PREFIX}/../nvidia/nccl/include
                ${CUDAToolkit_INCLUDE_DIRS})
      if(SILC_NCCL_DIR AND EXISTS ${_c10d}/ProcessGroupNCCL.hpp)
        list(APPEND SILC_C10D_DEFINITIONS SILC_HAVE_NCCL)
        list(APPEND SILC_C10D_INCLUDES ${SILC_NCCL_DIR})
      endif()
    endif()
    # Gloo's are in no PyTorch wheel; the distribution's fit the distribution's LibTorch
    find_path(SILC_GLOO_DIR gloo/algorithm.h HINTS ${_torch_include})
    if(SILC_GLOO_DIR AND EXISTS ${_c10d}/ProcessGroupGloo.hpp AND "${_torch_include}" STREQUAL "${SILC_GLOO_DIR}")
      list(APPEND SILC_C10D_DEFINITIONS SILC_HAVE_GLOO)
    endif()
    if(NOT SILC_C10D_DEFINITIONS)
      message(STATUS "Neither Gloo's nor NCCL's headers were found: silc trains in one process. Install libgloo-dev "
                     "(CPUs), or point SILC_NCCL_DIR at the folder of nccl.h (GPUs).")
    endif()
  endif()
endif()
