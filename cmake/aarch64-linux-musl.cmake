# Cross build for 64-bit ARM Linux with the C library musl, of whose packages tools/fetch_packages.sh makes the folder
# musl/ of the build folder; tests run through qemu-user. The C++ compiler is that of glibc: it compiles one file.
include(${CMAKE_CURRENT_LIST_DIR}/aarch64-linux-gnu.cmake)
get_property(hak_is_trial GLOBAL PROPERTY IN_TRY_COMPILE) # its build folder is another, and its flags are given
if(NOT hak_is_trial)
  set(hak_musl ${CMAKE_BINARY_DIR}/musl)
  if(NOT EXISTS ${hak_musl}/.complete)
    message(FATAL_ERROR "musl for aarch64 is not in ${hak_musl}: ./hakmem build aarch64-musl brings it")
  endif()
  # The package's own specs, with the folder that it lies in.
  set(hak_libraries ${hak_musl}/usr/lib/aarch64-linux-musl)
  file(READ ${hak_libraries}/musl-gcc.specs hak_specs)
  string(REPLACE " /usr/" " ${hak_musl}/usr/" hak_specs "${hak_specs}")
  string(REPLACE "-L/usr/" "-L${hak_musl}/usr/" hak_specs "${hak_specs}")
  file(WRITE ${CMAKE_BINARY_DIR}/musl.specs "${hak_specs}")
  # It knows no headers but musl's; those of the kernel serve any C library.
  foreach(folder linux asm-generic asm)
    file(CREATE_LINK /usr/aarch64-linux-gnu/include/${folder} ${hak_musl}/usr/include/aarch64-linux-musl/${folder}
      SYMBOLIC)
  endforeach()
  # The atomics of gcc's library ask glibc for the processor.
  set(CMAKE_C_FLAGS_INIT "-specs=${CMAKE_BINARY_DIR}/musl.specs -mno-outline-atomics")
  # Nor does it ask for the table of unwind tables, without which reports have no stacks.
  foreach(kind EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "-Wl,--eh-frame-hdr -L${hak_musl}/lib/aarch64-linux-musl")
  endforeach()
  set(CMAKE_FIND_ROOT_PATH ${hak_musl}) # nothing of the system's own libraries is found
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -cpu neoverse-n1 -L ${hak_musl})
endif()
