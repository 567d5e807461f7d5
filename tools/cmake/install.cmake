# SPDX-License-Identifier: MIT
#
# What `cmake --install` installs: the libraries in TN_INSTALL_TARGETS, headers, the program with
# its manual page, and the packages for CMake and pkg-config. Both packages find their prefix from
# where they lie, so the installed tree can be moved. Components, for packagers: tenure_runtime,
# tenure_development, tenure_tool.
#
# One more library: append its target to TN_INSTALL_TARGETS, give it an EXPORT_NAME, and let what
# it links be $<BUILD_INTERFACE:...> or plain names in $<INSTALL_INTERFACE:...>.
include(CMakePackageConfigHelpers)
set(tn_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tenure)
set(tn_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(tn_out ${PROJECT_BINARY_DIR}/package)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tenure DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT tenure_development FILES_MATCHING PATTERN "*.h")
install(TARGETS ${TN_INSTALL_TARGETS} EXPORT tenure-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT tenure_runtime
    NAMELINK_COMPONENT tenure_development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT tenure_development)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tenure_development)

# ---- CMake ----
install(EXPORT tenure-targets NAMESPACE tenure:: DESTINATION ${tn_cmake_dir}
  COMPONENT tenure_development)
configure_package_config_file(${PROJECT_SOURCE_DIR}/tools/cmake/tenure-config.cmake.in
  ${tn_out}/tenure-config.cmake INSTALL_DESTINATION ${tn_cmake_dir}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${tn_out}/tenure-config-version.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${tn_out}/tenure-config.cmake ${tn_out}/tenure-config-version.cmake
  DESTINATION ${tn_cmake_dir} COMPONENT tenure_development)

# ---- pkg-config ----
file(RELATIVE_PATH tn_up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" tn_pc_prefix "\${pcfiledir}/${tn_up}")
set(tn_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
set(tn_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(tn_pc_prefix ${CMAKE_INSTALL_PREFIX})
  set(tn_pc_libdir ${CMAKE_INSTALL_LIBDIR})
endif()
if(IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
  set(tn_pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
endif()
set(tn_pc_private)
foreach(dir ${TN_STATIC_LIBRARY_DIRS})
  string(APPEND tn_pc_private " -L${dir}")
endforeach()
foreach(lib ${TN_STATIC_LIBRARIES})
  if(lib MATCHES "^-")
    string(APPEND tn_pc_private " ${lib}")
  else()
    string(APPEND tn_pc_private " -l${lib}")
  endif()
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/tools/cmake/tenure.pc.in ${tn_out}/tenure.pc @ONLY)
install(FILES ${tn_out}/tenure.pc DESTINATION ${tn_pc_dir} COMPONENT tenure_development)

# ---- the program ----
if(TARGET tenure_tool)
  file(RELATIVE_PATH tn_up ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(tenure_tool PROPERTIES INSTALL_RPATH "$ORIGIN/${tn_up}")
  install(TARGETS tenure_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tenure_tool)
  if(TARGET tenure_man)
    install(DIRECTORY ${TN_MAN_DIR}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tenure_tool
      FILES_MATCHING PATTERN "*.1")
  endif()
endif()
