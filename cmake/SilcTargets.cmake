# SPDX-License-Identifier: Apache-2.0
# Flags shared by every silc target, and the ways a target is declared.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(silc_flags INTERFACE)
# options are structs with defaults, named at the call: fields left out are meant to be left out
target_compile_options(silc_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wvla -Wno-missing-field-initializers)
# g++ 12 sees overlapping copies in "text" + std::string that are not there (GCC bug 105651)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(silc_flags INTERFACE -Wno-restrict)
endif()
if(SILC_WERROR)
  target_compile_options(silc_flags INTERFACE -Werror)
endif()
# Debug builds carry Eigen's heap guard, so that "does not allocate" is tested and not hoped for.
# The macro changes Eigen's inline code: it must be the same in every target, hence global.
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_compile_definitions(EIGEN_RUNTIME_NO_MALLOC)
endif()
if(SILC_SANITIZE)
  add_compile_options(-fsanitize=${SILC_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SILC_SANITIZE})
  # UBSan's looks at every pointer before every use are two thirds of the instrumented code and a
  # third of the time to compile Eigen. A null pointer ends the program under ASan anyway; Eigen
  # asserts the alignment of what it loads, and the fuzzers, whose readers take bytes apart, keep
  # both.
  if(SILC_SANITIZE MATCHES "undefined" AND NOT SILC_WITH_FUZZ)
    add_compile_options(-fno-sanitize=null,alignment)
  endif()
  # g++ sees uninitialised values in the standard library's own inlined code once it is instrumented
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()
# Several sources of a target compiled as one: a header is read, and a template instantiated, once
# for all of them. Sources with flags of their own stay apart; so do those of silc_compile_alone().
set(CMAKE_UNITY_BUILD ${SILC_UNITY})
if(NOT CMAKE_UNITY_BUILD_BATCH_SIZE)  # a machine with many cores has fewer: none waits for the last
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
endif()
# the fuzzer steers by the coverage of the code under test, so every library carries the counters
if(SILC_WITH_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# silc_compile_alone(sources...): these define a name, in their unnamed namespace, that a neighbour
# has, too ("error: redefinition of kNan" in the asan build), or are so full of Eigen's
# decompositions that together they take longer.
function(silc_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# silc_library(NAME sources... [DEPENDS targets...]): one module, reachable as silc::NAME.
function(silc_library name)
  cmake_parse_arguments(arg "" "" "DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(silc_${name} ${arg_UNPARSED_ARGUMENTS})
  add_library(silc::${name} ALIAS silc_${name})
  target_include_directories(silc_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(silc_${name} PUBLIC ${arg_DEPENDS} PRIVATE ${arg_PRIVATE_DEPENDS} silc_flags)
endfunction()

# silc_cuda_library(NAME sources... [DEPENDS targets...]): what nvcc compiles. A target of its own:
# nvcc does not know the warning flags of the others. A newer CMake would put .cu together, too.
function(silc_cuda_library name)
  cmake_parse_arguments(arg "" "" "DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(silc_${name} ${arg_UNPARSED_ARGUMENTS})
  add_library(silc::${name} ALIAS silc_${name})
  target_include_directories(silc_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(silc_${name} PUBLIC CUDA::cudart ${arg_DEPENDS} PRIVATE ${arg_PRIVATE_DEPENDS})
  set_target_properties(silc_${name} PROPERTIES
    CUDA_STANDARD 20 CUDA_ARCHITECTURES "${SILC_CUDA_ARCHITECTURES}" UNITY_BUILD OFF)
endfunction()

# silc_test_module(NAME SOURCES a_test.cc... LIBRARIES targets...): the tests of a folder, or of the
# part of it that needs these libraries, as one program NAME_tests, because linking a program per
# source took as long as compiling it. CTest still has an entry for each source, NAME/a_test, so
# that two cores share the work and a failure says where.
function(silc_test_module name)
  if(NOT SILC_WITH_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name}_tests ${arg_SOURCES})
  target_link_libraries(${name}_tests PRIVATE ${arg_LIBRARIES} silc_test_main silc_flags)
  foreach(source IN LISTS arg_SOURCES)
    if(source MATCHES "^(.*_test)\\.cc$")
      add_test(NAME ${name}/${CMAKE_MATCH_1} COMMAND ${name}_tests --source=${source})
      set_tests_properties(${name}/${CMAKE_MATCH_1} PROPERTIES TIMEOUT 1800 LABELS ${name})
    endif()
  endforeach()
endfunction()

# silc_fuzz(NAME_fuzz libraries...): NAME_fuzz.cc in this folder, a libFuzzer target that `./dev
# fuzz` finds in build/fuzz/fuzz; its seeds are the files in fuzz_corpus/ beside it. Elsewhere the
# same source becomes a test that reads those seeds, so that a fuzzer cannot rot.
function(silc_fuzz name)
  if(NOT SILC_WITH_FUZZ)
    if(SILC_WITH_TESTS)
      add_executable(${name} ${name}.cc ${PROJECT_SOURCE_DIR}/silc/base/fuzz_seeds_main.cc)
      target_link_libraries(${name} PRIVATE ${ARGN} silc_flags)
      file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/silc ${CMAKE_CURRENT_SOURCE_DIR})
      add_test(NAME ${folder}/${name} COMMAND ${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_corpus)
    endif()
    return()
  endif()
  add_executable(${name} ${name}.cc)
  target_link_libraries(${name} PRIVATE ${ARGN} silc_flags -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  if(NOT TARGET silc_fuzzers)
    add_custom_target(silc_fuzzers)  # all of them, and nothing they do not need
  endif()
  add_dependencies(silc_fuzzers ${name})
endfunction()
