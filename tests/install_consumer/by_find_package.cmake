# SPDX-License-Identifier: Apache-2.0
# Builds and runs the consumer as a CMake project that gets the prefix and nothing else.
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK} -G Ninja
        -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS}
        -DCMAKE_PREFIX_PATH=${PREFIX} -DWANTED_VERSION=${VERSION}
        -DEXAMPLES=${EXAMPLES} -DPUBLIC_HEADERS=${SOURCE}/cmake/public_headers.cmake)
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${CMAKE_COMMAND} --build ${WORK})
foreach(program IN ITEMS consumer names beside_felix)
    execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${WORK}/${program} ${VERSION})
endforeach()

# The same in C.
file(REMOVE_RECURSE ${WORK}_c)
execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/c_consumer -B ${WORK}_c -G Ninja
        -DCMAKE_C_FLAGS=${FLAGS} -DCMAKE_PREFIX_PATH=${PREFIX} -DWANTED_VERSION=${VERSION})
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${CMAKE_COMMAND} --build ${WORK}_c)
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${WORK}_c/c_consumer ${VERSION})
