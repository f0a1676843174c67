# Installed: both libraries, the public headers, a CMake package (hakmem::hakmem, hakmem::static), hakmem.pc, the command.
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

# The command finds the library and its Python files from its own place.
file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH bin_to_data ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR})
file(STRINGS ${PROJECT_SOURCE_DIR}/src/conf/presets.def profiles REGEX "^HAK_PRESET")
list(TRANSFORM profiles REPLACE "^HAK_PRESET.\"([a-z-]+)\".*" "\\1")
list(REMOVE_DUPLICATES profiles)
if(NOT HAK_HARDEN) # hardened is a library of its own
  list(REMOVE_ITEM profiles hardened)
endif()
list(JOIN profiles " " profiles)
configure_file(${PROJECT_SOURCE_DIR}/cmake/hakmem.in ${PROJECT_BINARY_DIR}/command/hakmem @ONLY)
install(PROGRAMS ${PROJECT_BINARY_DIR}/command/hakmem DESTINATION ${CMAKE_INSTALL_BINDIR})
set(tools ${PROJECT_SOURCE_DIR}/tools)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/view_plain.py DESTINATION ${CMAKE_INSTALL_DATADIR}/hakmem)
foreach(module __init__ channel errors plain process source)
  install(FILES ${tools}/hakmem_view/${module}.py DESTINATION ${CMAKE_INSTALL_DATADIR}/hakmem/hakmem_view)
endforeach()
install(FILES ${tools}/hakmem_lab/__init__.py ${tools}/hakmem_lab/errors.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/hakmem/hakmem_lab)
