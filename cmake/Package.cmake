# Part of Weft. SPDX-License-Identifier: Apache-2.0
# What an installed Weft tells other builds: find_package(Weft COMPONENTS runtime compiler), weft.pc, weft-compiler.pc.
include(CMakePackageConfigHelpers)

if(NOT WEFT_CMAKE_DIR)
  set(WEFT_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/Weft")
  set(WEFT_PKGCONFIG_DIR "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()

# weft_interface_number(HEADER MACRO OUT): the number that a header defines MACRO as.
function(weft_interface_number header macro out)
  file(STRINGS "${header}" line REGEX "^#define ${macro} [0-9]+$")
  string(REGEX REPLACE ".* " "" number "${line}")
  if(number STREQUAL "")
    message(FATAL_ERROR "expected a line '#define ${macro} NUMBER' in ${header}")
  endif()
  set(${out} ${number} PARENT_SCOPE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
endfunction()

# weft_install_interface(TARGET COMPONENT runtime|compiler NAME NAME HEADERS ... ABOUT TEXT): installs a shared library
# with its headers as Weft::NAME, for CMake and for pkg-config.
function(weft_install_interface target)
  cmake_parse_arguments(ARG "" "COMPONENT;NAME;ABOUT" "HEADERS" ${ARGN})
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${ARG_NAME})
  add_library(Weft::${ARG_NAME} ALIAS ${target})
  if(SKBUILD)
    set(namelink NAMELINK_SKIP) # wheels know no links
  endif()
  install(TARGETS ${target} EXPORT WeftTargets-${ARG_COMPONENT}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${ARG_COMPONENT} ${namelink})
  install(FILES ${ARG_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${ARG_COMPONENT})
  install(EXPORT WeftTargets-${ARG_COMPONENT} NAMESPACE Weft:: DESTINATION ${WEFT_CMAKE_DIR} COMPONENT ${ARG_COMPONENT})
  weft_install_pkgconfig(${target} ${ARG_COMPONENT} "${ARG_ABOUT}")
endfunction()

# weft_install_pkgconfig(TARGET COMPONENT ABOUT): TARGET.pc. Its paths are relative to itself, so that a prefix can move.
function(weft_install_pkgconfig target component about)
  file(RELATIVE_PATH WEFT_PC_PREFIX "/${WEFT_PKGCONFIG_DIR}" "/")
  get_target_property(version ${target} SOVERSION)
  set(WEFT_PC_LINK "-l${target}")
  if(SKBUILD) # a folder that no loader looks into
    string(APPEND WEFT_PC_LINK " -Wl,-rpath,\${libdir}")
    if(NOT version STREQUAL "version-NOTFOUND")
      string(REPLACE "-l${target} " "-l:lib${target}.so.${version} " WEFT_PC_LINK "${WEFT_PC_LINK}")
    endif()
  endif()
  set(WEFT_PC_NAME ${target})
  set(WEFT_PC_ABOUT "${about}")
  set(file "${PROJECT_BINARY_DIR}/pkgconfig/${target}.pc")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/weft.pc.in" "${file}" @ONLY)
  install(FILES "${file}" DESTINATION ${WEFT_PKGCONFIG_DIR} COMPONENT ${component})
endfunction()

# The package itself comes with the runtime; which components there are, it sees by their files.
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/WeftConfig.cmake.in" "${PROJECT_BINARY_DIR}/WeftConfig.cmake"
                              INSTALL_DESTINATION ${WEFT_CMAKE_DIR})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/WeftConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/WeftConfig.cmake" "${PROJECT_BINARY_DIR}/WeftConfigVersion.cmake"
        DESTINATION ${WEFT_CMAKE_DIR} COMPONENT runtime)
