# gperftools' names (tcmalloc/), in a library of the names that programs need: libtcmalloc_minimal.so.4, and libtcmalloc.so.4 as
# another name of it. It is a filter: the dynamic linker of glibc puts libhakmem.so before it, ahead of the C library, so that
# malloc is hakmem's. Built when it is asked for: cmake --build build/release --target hakmem_tcmalloc
set(HAK_TCMALLOC_DIR ${PROJECT_BINARY_DIR}/tcmalloc)
file(GLOB tcmalloc_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tcmalloc/*.cpp)
add_library(hakmem_tcmalloc SHARED EXCLUDE_FROM_ALL ${tcmalloc_sources})
set_target_properties(hakmem_tcmalloc PROPERTIES OUTPUT_NAME tcmalloc_minimal SOVERSION 4 LIBRARY_OUTPUT_DIRECTORY ${HAK_TCMALLOC_DIR}
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_compile_definitions(hakmem_tcmalloc PRIVATE _GNU_SOURCE=1)
target_compile_options(hakmem_tcmalloc PRIVATE -std=c++17 ${HAK_OPTIMIZE} ${HAK_WARNINGS}
  -ffile-prefix-map=${PROJECT_BINARY_DIR}=. -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
# The second for the heap profiler's files. As a part: the shared one names no C library, so the dynamic linker may resolve its names
# before it has prepared the C library, and crash.
target_link_libraries(hakmem_tcmalloc PRIVATE hakmem hakmem_observe_static)
target_link_options(hakmem_tcmalloc PRIVATE -Wl,--filter=$<TARGET_SONAME_FILE_NAME:hakmem> -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete
  -Wl,--no-undefined -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,--version-script=${PROJECT_SOURCE_DIR}/tcmalloc/names.map)
set_target_properties(hakmem_tcmalloc PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/tcmalloc/names.map)
add_custom_command(TARGET hakmem_tcmalloc POST_BUILD
  COMMAND ${CMAKE_COMMAND} -E create_symlink libtcmalloc_minimal.so.4 ${HAK_TCMALLOC_DIR}/libtcmalloc.so.4 VERBATIM)
install(TARGETS hakmem_tcmalloc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP COMPONENT tcmalloc EXCLUDE_FROM_ALL)
