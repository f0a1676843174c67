# Installed: both libraries without debug symbols, the public headers, a CMake package (hakmem::hakmem, hakmem::static),
# hakmem.pc, the command with what it needs, manual pages and completions, and by observe/ the observer. The component `debug`
# has the symbols.
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
foreach(name hakmem hakmem-observe)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/hakmem.pc ${PROJECT_BINARY_DIR}/hakmem-observe.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Debug symbols apart: gdb finds LIBDIR/.debug/X.debug by the name in the library. The build folder keeps whole libraries.
set(shared_file libhakmem.so.${PROJECT_VERSION})
set(stripped ${PROJECT_BINARY_DIR}/stripped)
add_custom_command(TARGET hakmem POST_BUILD
  COMMAND ${CMAKE_COMMAND} -E make_directory ${stripped}
  COMMAND ${CMAKE_OBJCOPY} --only-keep-debug $<TARGET_FILE:hakmem> ${stripped}/${shared_file}.debug
  COMMAND ${CMAKE_OBJCOPY} --strip-unneeded --remove-section=.comment
          --add-gnu-debuglink=${stripped}/${shared_file}.debug $<TARGET_FILE:hakmem> ${stripped}/${shared_file}
  VERBATIM)
add_custom_command(TARGET hakmem_static POST_BUILD
  COMMAND ${CMAKE_COMMAND} -E make_directory ${stripped}
  COMMAND ${CMAKE_OBJCOPY} --strip-debug $<TARGET_FILE:hakmem_static> ${stripped}/libhakmem.a
  VERBATIM)
install(CODE "
  foreach(file ${shared_file} libhakmem.a)
    file(COPY_FILE \"${stripped}/\${file}\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/\${file}\")
  endforeach()")
install(FILES ${stripped}/${shared_file}.debug DESTINATION ${CMAKE_INSTALL_LIBDIR}/.debug COMPONENT debug
  EXCLUDE_FROM_ALL)

# The command finds the library and its Python files from its own place.
set(data ${CMAKE_INSTALL_DATADIR}/hakmem)
file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH bin_to_data ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR})
file(RELATIVE_PATH data_to_bin ${CMAKE_INSTALL_FULL_DATADIR}/hakmem ${CMAKE_INSTALL_FULL_BINDIR})
file(RELATIVE_PATH data_to_lib ${CMAKE_INSTALL_FULL_DATADIR}/hakmem ${CMAKE_INSTALL_FULL_LIBDIR})
file(STRINGS ${PROJECT_SOURCE_DIR}/src/conf/presets.def profiles REGEX "^HAK_PRESET")
list(TRANSFORM profiles REPLACE "^HAK_PRESET.\"([a-z-]+)\".*" "\\1")
list(REMOVE_DUPLICATES profiles)
if(NOT HAK_HARDEN) # hardened is a library of its own
  list(REMOVE_ITEM profiles hardened)
endif()
list(JOIN profiles " " profiles)
configure_file(${PROJECT_SOURCE_DIR}/cmake/hakmem.in ${PROJECT_BINARY_DIR}/command/hakmem @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/cmake/hakmem_installed.py.in ${PROJECT_BINARY_DIR}/command/hakmem_installed.py @ONLY)
install(PROGRAMS ${PROJECT_BINARY_DIR}/command/hakmem DESTINATION ${CMAKE_INSTALL_BINDIR})
set(tools ${PROJECT_SOURCE_DIR}/tools)
install(FILES ${tools}/launch.sh ${tools}/view.py ${tools}/command.py ${tools}/exporter.py ${PROJECT_BINARY_DIR}/command/hakmem_installed.py
  DESTINATION ${data})
foreach(folder hakmem_view hakmem_command hakmem_exporter)
  install(DIRECTORY ${tools}/${folder} DESTINATION ${data}
    FILES_MATCHING PATTERN "*.py" PATTERN "*.j2" PATTERN "*.css" PATTERN "*.js" PATTERN __pycache__ EXCLUDE)
endforeach()
foreach(module __init__ browser command_line errors palette place)
  install(FILES ${tools}/hakmem_lab/${module}.py DESTINATION ${data}/hakmem_lab)
endforeach()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/packaging/exporter DESTINATION ${data}) # a dashboard, alerts, a unit, a DaemonSet

# Manual pages and completions, and the table of options that the command reads.
set(manual ${PROJECT_BINARY_DIR}/manual)
set(manual_files hakmem.1 hakmem-observe.1 hakmem.3 hakmem-options.7 options.json
  hakmem.bash _hakmem hakmem.fish hakmem-observe.bash _hakmem-observe hakmem-observe.fish)
file(GLOB manual_parts ${tools}/hakmem_command/*.py ${tools}/hakmem_view/profile_plain.py) # they state options
list(TRANSFORM manual_files PREPEND ${manual}/ OUTPUT_VARIABLE manual_paths)
add_custom_command(OUTPUT ${manual_paths}
  COMMAND ${Python3_EXECUTABLE} -B ${tools}/gen_manual.py ${manual}
  DEPENDS ${tools}/gen_manual.py ${tools}/gen_options.py ${tools}/gen_pages.py ${HAK_PUBLIC_HEADER} ${manual_parts}
          ${PROJECT_SOURCE_DIR}/cmake/hakmem.in ${PROJECT_SOURCE_DIR}/observe/main.c ${PROJECT_SOURCE_DIR}/src/base/options.def
          ${PROJECT_SOURCE_DIR}/src/conf/presets.def
  COMMENT "Writing the manual" VERBATIM)
# The pages for users, which `hakmem docs` shows and messages name.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs)
file(GLOB pages ${PROJECT_SOURCE_DIR}/docs/*.md ${PROJECT_SOURCE_DIR}/docs/*.svg
  ${PROJECT_SOURCE_DIR}/docs/schema/*.json)
add_custom_command(OUTPUT ${manual}/docs/README.md
  COMMAND ${Python3_EXECUTABLE} -B ${tools}/gen_pages.py ${manual}/docs
  DEPENDS ${tools}/gen_pages.py ${PROJECT_SOURCE_DIR}/README.md ${pages} ${HAK_PUBLIC_HEADER}
  COMMENT "Writing the pages" VERBATIM)
add_custom_target(manual DEPENDS ${manual_paths} ${manual}/docs/README.md)
add_dependencies(hakmem_static manual) # what installs the libraries installs the manual
install(FILES ${manual}/options.json DESTINATION ${data})
install(DIRECTORY ${manual}/docs DESTINATION ${data})
install(FILES ${manual}/hakmem.1 ${manual}/hakmem-observe.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${manual}/hakmem.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
install(FILES ${manual}/hakmem-options.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
foreach(command hakmem hakmem-observe)
  install(FILES ${manual}/${command}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${command})
  install(FILES ${manual}/_${command} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${manual}/${command}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endforeach()

if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -D MANIFESTS=${PROJECT_BINARY_DIR}/install_manifest
    -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake VERBATIM)
endif()
