# SPDX-License-Identifier: MIT
#
# The manual pages, from the program's own help, where help2man is installed and the program can
# be run. Nothing else needs them: without help2man there are none.
find_program(TN_HELP2MAN help2man)
if(NOT TN_HELP2MAN)
  message(STATUS "No manual pages: help2man is not installed")
elseif(NOT CMAKE_CROSSCOMPILING AND NOT TN_SANITIZE AND NOT TN_COVERAGE)
  set(TN_MAN_DIR ${PROJECT_BINARY_DIR}/man)
  add_custom_command(OUTPUT ${TN_MAN_DIR}/tenure.1
    COMMAND sh ${PROJECT_SOURCE_DIR}/tools/man.sh ${TN_HELP2MAN} $<TARGET_FILE:tenure_tool>
      ${PROJECT_VERSION} ${PROJECT_DESCRIPTION} ${TN_MAN_DIR}
    DEPENDS tenure_tool ${PROJECT_SOURCE_DIR}/tools/man.sh VERBATIM)
  add_custom_target(tenure_man ALL DEPENDS ${TN_MAN_DIR}/tenure.1)
endif()
