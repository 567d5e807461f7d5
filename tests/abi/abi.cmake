# SPDX-License-Identifier: MIT
#
# Tests of the shared library as a user gets it. They build their own (Release, no sanitizer) in a
# folder of the build tree, kept between runs, so what this build's own flags are does not matter;
# for the same reason they are left out where all tests run a second and a third time.
if(NOT TN_SANITIZE AND NOT TN_COVERAGE)
  foreach(stem hotpath library scaling)
    add_test(NAME abi.${stem} COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/abi.sh
      ${CMAKE_CURRENT_LIST_DIR}/abi_${stem}.py ${CMAKE_BINARY_DIR}/hotpath)
    set_tests_properties(abi.${stem} PROPERTIES
      LABELS abi SKIP_RETURN_CODE 77 TIMEOUT 900 PROCESSORS 2 RESOURCE_LOCK hotpath
      ENVIRONMENT "CC=${CMAKE_C_COMPILER}")
  endforeach()
  foreach(stem headers layout) # of the headers alone
    add_test(NAME abi.${stem} COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/abi.sh
      ${CMAKE_CURRENT_LIST_DIR}/abi_${stem}.py)
    set_tests_properties(abi.${stem} PROPERTIES LABELS abi SKIP_RETURN_CODE 77 TIMEOUT ${TN_TEST_TIMEOUT}
      ENVIRONMENT "CC=${CMAKE_C_COMPILER}")
  endforeach()
  add_test(NAME abi.ctypes COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/abi.sh
    ${CMAKE_CURRENT_LIST_DIR}/abi_ctypes.py $<TARGET_FILE:tenure>)
  set_tests_properties(abi.ctypes PROPERTIES LABELS abi SKIP_RETURN_CODE 77 TIMEOUT ${TN_TEST_TIMEOUT})
endif()
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/abi_version.c PROPERTIES
  COMPILE_DEFINITIONS "TN_PROJECT_VERSION=\"${PROJECT_VERSION}\"")
