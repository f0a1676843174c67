# Installed: both libraries, the public headers, a CMake package (hakmem::hakmem, hakmem::static) and hakmem.pc.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hakmem)
install(TARGETS hakmem hakmem_static EXPORT hakmem
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hakmem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT hakmem NAMESPACE hakmem:: FILE hakmem-targets.cmake DESTINATION ${package_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/hakmem-config.cmake.in
  ${PROJECT_BINARY_DIR}/hakmem-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hakmem-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hakmem-config.cmake ${PROJECT_BINARY_DIR}/hakmem-config-version.cmake
  DESTINATION ${package_dir})

# hakmem.pc finds its prefix from its own place, so an installed tree may be moved.
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/hakmem.pc.in ${PROJECT_BINARY_DIR}/hakmem.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hakmem.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
