# libhakmem_je.a: malloc's family and jemalloc's functions under a prefix, for programs that have jemalloc inside under one, and
# have another allocator beside it. All other names are local, so that the library may also be preloaded, or linked under a second
# prefix. Without report at exit, prof.dump and C++ operators. Built when it is asked for: cmake --build build/release --target hakmem_je
set(HAK_JE_PREFIX je_ CACHE STRING "prefix of the names in libhakmem_je.a; that of Rust's crates is _rjem_")
set(names "")
set(kept "")
foreach(name malloc calloc realloc free aligned_alloc posix_memalign memalign valloc malloc_usable_size)
  string(APPEND names "hak_${name} ${HAK_JE_PREFIX}${name}\n")
  string(APPEND kept "${HAK_JE_PREFIX}${name}\n")
endforeach()
foreach(name mallocx rallocx xallocx sallocx dallocx sdallocx nallocx mallctl mallctlnametomib mallctlbymib malloc_stats_print
             malloc_message malloc_conf)
  string(APPEND names "hak_je_${name} ${HAK_JE_PREFIX}${name}\n")
  string(APPEND kept "${HAK_JE_PREFIX}${name}\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/je.names CONTENT "${names}")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/je.kept CONTENT "${kept}")

add_library(hak_unity_je OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/src/unity.c ${PROJECT_SOURCE_DIR}/src/cold.c)
hak_compile(hak_unity_je 0 0)
target_compile_definitions(hak_unity_je PRIVATE HAK_REPORT=0 HAK_JE_PREFIX="${HAK_JE_PREFIX}")
hak_placed(${PROJECT_BINARY_DIR}/je_placed.o hak_unity_je)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/je.o
  COMMAND ${CMAKE_OBJCOPY} --redefine-syms=${PROJECT_BINARY_DIR}/je.names ${PROJECT_BINARY_DIR}/je_placed.o je_named.o
  COMMAND ${CMAKE_OBJCOPY} --keep-global-symbols=${PROJECT_BINARY_DIR}/je.kept je_named.o je.o
  DEPENDS ${PROJECT_BINARY_DIR}/je_placed.o ${PROJECT_BINARY_DIR}/je.names ${PROJECT_BINARY_DIR}/je.kept
  WORKING_DIRECTORY ${PROJECT_BINARY_DIR} COMMENT "" VERBATIM)
add_library(hakmem_je STATIC EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/je.o)
set_target_properties(hakmem_je PROPERTIES LINKER_LANGUAGE C)
target_include_directories(hakmem_je INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_link_options(hakmem_je INTERFACE -Wl,--eh-frame-hdr)
