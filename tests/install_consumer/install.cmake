# SPDX-License-Identifier: Apache-2.0
# Installs the build tree BUILD into PREFIX; with SOURCE it first builds shared libraries there.
if(SOURCE)
    execute_process(COMMAND_ERROR_IS_FATAL ANY
        COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G Ninja -DCMAKE_CXX_COMPILER=${CXX}
            -DCMAKE_BUILD_TYPE=RelWithDebInfo -DBUILD_SHARED_LIBS=ON
            -DNETIO_BUILD_TESTS=OFF -DNETIO_BUILD_APPS=OFF)
    execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${CMAKE_COMMAND} --build ${BUILD})
endif()
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})

# What is private stays at home.
file(GLOB_RECURSE headers RELATIVE ${PREFIX}/include ${PREFIX}/include/*)
foreach(header IN LISTS headers)
    if(header MATCHES "netio/fabric/|_impl\\.hpp$")
        message(FATAL_ERROR "a private header is installed: ${header}")
    endif()
endforeach()
