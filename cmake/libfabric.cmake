# SPDX-License-Identifier: Apache-2.0
# libfabric: its headers are needed to build, itself only to run (docs/decisions/0014).
set(NETIO_LIBFABRIC_MINIMUM 1.17)
pkg_check_modules(LIBFABRIC REQUIRED IMPORTED_TARGET "libfabric>=${NETIO_LIBFABRIC_MINIMUM}")

# The versions of its functions that the linker would choose here, as definitions for library.cpp.
execute_process(COMMAND ${CMAKE_READELF} --dyn-syms -W ${LIBFABRIC_LINK_LIBRARIES}
    OUTPUT_VARIABLE symbols ERROR_QUIET)
set(NETIO_LIBFABRIC_DEFINITIONS NETIO_LIBFABRIC_MINIMUM="${NETIO_LIBFABRIC_MINIMUM}")
foreach(function IN ITEMS fi_dupinfo fi_fabric fi_freeinfo fi_getinfo fi_strerror fi_version)
    if(NOT symbols MATCHES " ${function}@@([A-Za-z0-9_.]+)")
        message(FATAL_ERROR "'${LIBFABRIC_LINK_LIBRARIES}' is no shared libfabric: it has no ${function}")
    endif()
    string(TOUPPER ${function} name)
    list(APPEND NETIO_LIBFABRIC_DEFINITIONS NETIO_VERSION_OF_${name}="${CMAKE_MATCH_1}")
endforeach()

# One that lies elsewhere is found by what is built here, as if it had been linked.
list(APPEND CMAKE_BUILD_RPATH ${LIBFABRIC_LIBRARY_DIRS})

# netio_use_libfabric_headers(<target>)
function(netio_use_libfabric_headers target)
    target_include_directories(${target} SYSTEM PRIVATE ${LIBFABRIC_INCLUDE_DIRS})
    target_compile_options(${target} PRIVATE ${LIBFABRIC_CFLAGS_OTHER})
endfunction()
