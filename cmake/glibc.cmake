# A libc.so.6 with names and versions only, which shared libraries are linked with instead of that of this system: so they
# run from glibc 2.17 on, wherever they are built. HAK_GLIBC_LIBRARY is its file; target hak_glibc makes it.
set(hak_glibc_dir ${PROJECT_BINARY_DIR}/glibc)
set(HAK_GLIBC_LIBRARY ${hak_glibc_dir}/libc.so.6)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/glibc.symbols)
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/glibc.symbols hak_lines REGEX "^[0-9]")
set(hak_names "")
set(hak_versions "")
foreach(line IN LISTS hak_lines)
  string(REPLACE " " ";" words "${line}")
  list(POP_FRONT words version)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(version 2.17)
  endif()
  list(APPEND hak_versions ${version})
  list(APPEND hak_names_${version} ${words})
  list(APPEND hak_names ${words})
endforeach()
list(REMOVE_DUPLICATES hak_versions)
set(hak_text "")
foreach(version IN LISTS hak_versions)
  list(JOIN hak_names_${version} "; " words)
  string(APPEND hak_text "GLIBC_${version} { global: ${words}; };\n")
endforeach()
file(CONFIGURE OUTPUT ${hak_glibc_dir}/libc.map CONTENT "${hak_text}" @ONLY)
list(TRANSFORM hak_names REPLACE "(.+)" "HAK_NAME(\\1, function)" OUTPUT_VARIABLE hak_lines)
list(TRANSFORM hak_lines REPLACE "environ, function" "environ, object")
list(JOIN hak_lines "\n" hak_text)
file(CONFIGURE OUTPUT ${hak_glibc_dir}/libc.c CONTENT
  "#define HAK_NAME(name, kind) \\
    __asm__(\".globl \" #name \"\\n.type \" #name \", %\" #kind \"\\n.size \" #name \", 8\\n\" #name \": .quad 0\");
__asm__(\".text\");\n${hak_text}\n" @ONLY)
add_custom_command(OUTPUT ${HAK_GLIBC_LIBRARY}
  COMMAND ${CMAKE_C_COMPILER} -shared -nostdlib -fPIC -Wl,-soname,libc.so.6 -Wl,--version-script=${hak_glibc_dir}/libc.map
    -o ${HAK_GLIBC_LIBRARY} ${hak_glibc_dir}/libc.c
  DEPENDS ${hak_glibc_dir}/libc.map ${hak_glibc_dir}/libc.c COMMENT "" VERBATIM)
add_custom_target(hak_glibc DEPENDS ${HAK_GLIBC_LIBRARY})
