# SPDX-License-Identifier: Apache-2.0
# Installs the build tree BUILD into PREFIX.
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET
    COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})

# One folder is ours, and it is the include directory: a bare include/pubsub or include/stream would
# be in the way of others.
string(REGEX MATCH "^[0-9]+\\.[0-9]+" line ${VERSION})
file(GLOB folders RELATIVE ${PREFIX}/include ${PREFIX}/include/*)
if(NOT folders STREQUAL "netio-${line}")
    message(FATAL_ERROR "below include/ there is '${folders}' and not netio-${line} alone")
endif()

# What is public is there, and what is private stays at home.
include(${SOURCE}/cmake/public_headers.cmake)
foreach(header IN LISTS NETIO_PUBLIC_HEADERS)
    if(NOT EXISTS ${PREFIX}/include/netio-${line}/${header})
        message(FATAL_ERROR "a public header is not installed: ${header}")
    endif()
endforeach()
file(GLOB_RECURSE headers RELATIVE ${PREFIX}/include ${PREFIX}/include/*)
foreach(header IN LISTS headers)
    if(header MATCHES "netio/fabric/")
        message(FATAL_ERROR "a private header is installed: ${header}")
    endif()
endforeach()
list(LENGTH NETIO_PUBLIC_HEADERS public)
list(LENGTH headers all)
message(STATUS "${public} public headers, and ${all} with what they include")
