# SPDX-License-Identifier: MIT
#
# The installed tree as a user gets it: "package.<stem>" for each package_<stem>.sh. They use what
# this build has built, so they are left out where that needs a sanitizer's or gcov's run time.
# package.install makes the tree and moves it, the others run after it.
if(NOT TN_SANITIZE AND NOT TN_COVERAGE AND TN_INSTALL)
  set(tn_package_env "${tn_test_env}"
    "TN_PACKAGE_DIR=${PROJECT_BINARY_DIR}/package-test" "TN_EXAMPLE=${PROJECT_BINARY_DIR}/readme_example.c"
    "TN_BUILD_DIR=${PROJECT_BINARY_DIR}" "TN_VERSION=${PROJECT_VERSION}" "CMAKE=${CMAKE_COMMAND}"
    "CC=${CMAKE_C_COMPILER}" "CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER}")
  file(GLOB tn_package_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/package_*.sh)
  foreach(file ${tn_package_files})
    string(REGEX REPLACE ".*/package_(.*)\\.sh$" "\\1" stem ${file})
    if(stem STREQUAL "common") # sourced by the others
      continue()
    endif()
    add_test(NAME package.${stem} COMMAND sh ${file})
    set_tests_properties(package.${stem} PROPERTIES
      LABELS package SKIP_RETURN_CODE 77 TIMEOUT 1200 ENVIRONMENT "${tn_package_env}")
    if(stem STREQUAL "install")
      set_tests_properties(package.${stem} PROPERTIES FIXTURES_SETUP tn_installed)
    else()
      set_tests_properties(package.${stem} PROPERTIES FIXTURES_REQUIRED tn_installed)
    endif()
  endforeach()
endif()
