# Part of Weft. SPDX-License-Identifier: Apache-2.0
# Settings every target of Weft shares, and the two functions that make targets.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Files of a library are compiled eight at a time: a whole build takes three fifths of the time. The preset `dev` compiles each alone.
set(CMAKE_UNITY_BUILD ON CACHE BOOL "Compile several files of a library at a time")

find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE)
  # A precompiled header defeats ccache unless time stamps and defines of the header are left out of its key.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${WEFT_CCACHE})
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_link_options(-fuse-ld=lld)
endif()
if(WEFT_SANITIZE)
  include(Sanitizers)
endif()

# Warnings are errors in our own code only; third-party headers come in as system headers.
add_library(weft_options INTERFACE)
target_compile_options(weft_options INTERFACE -Wall -Wextra -Werror)
# Without the time in it, the compiler cache finds what was compiled with a precompiled header.
target_compile_options(weft_options INTERFACE
                       $<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>)
target_include_directories(weft_options INTERFACE "${PROJECT_SOURCE_DIR}")

# weft_make_portable(NAME): what a shared library needs in it to run beside older C libraries; in wheels only.
function(weft_make_portable name)
  if(TARGET WeftArc4Random)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:WeftArc4Random>)
  endif()
endfunction()

# weft_add_library(NAME [SHARED] SOURCES ... [LINK ...]): one library for one room of the tree.
function(weft_add_library name)
  cmake_parse_arguments(ARG "SHARED" "" "SOURCES;LINK" ${ARGN})
  if(ARG_SHARED)
    add_library(${name} SHARED ${ARG_SOURCES})
  else()
    add_library(${name} STATIC ${ARG_SOURCES})
  endif()
  target_link_libraries(${name} PRIVATE weft_options PUBLIC ${ARG_LINK})
endfunction()

# weft_reuse_headers(NAME FROM): a target takes the precompiled header of another, which is position-independent as libraries
# are, and serves no file compiled in another way.
function(weft_reuse_headers name from)
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${name} REUSE_FROM ${from})
endfunction()

# weft_add_unit_test(NAME SOURCES ... [LINK ...]): one GoogleTest binary, registered with ctest as NAME.
function(weft_add_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE weft_options ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT "weft_mlir" IN_LIST ARG_LINK) # else it has MLIR's headers precompiled
    weft_use_googletest(${name})
  endif()
endfunction()

# weft_use_googletest(NAME): a test is compiled with GoogleTest's headers precompiled, once for all of them.
function(weft_use_googletest name)
  if(NOT TARGET WeftTestPCH)
    add_library(WeftTestPCH OBJECT "${PROJECT_SOURCE_DIR}/cmake/Precompiled.cpp")
    target_link_libraries(WeftTestPCH PRIVATE weft_options GTest::gtest GTest::gmock)
    target_precompile_headers(WeftTestPCH PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  weft_reuse_headers(${name} WeftTestPCH)
endfunction()
