# SPDX-License-Identifier: Apache-2.0
# Builds and runs the consumer with the flags that pkg-config tells.
find_program(PKG_CONFIG NAMES pkg-config pkgconf REQUIRED)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(ENV{PKG_CONFIG_PATH} ${PREFIX}/${LIBDIR}/pkgconfig)
execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND ${PKG_CONFIG} --cflags --libs "netio-daq = ${VERSION}" OUTPUT_VARIABLE told)
separate_arguments(told UNIX_COMMAND "${told}")
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND_ECHO STDOUT
    COMMAND ${CXX} -std=c++20 ${FLAGS} ${CMAKE_CURRENT_LIST_DIR}/consumer/main.cpp
        -o ${WORK}/consumer ${told} -Wl,-rpath,${PREFIX}/${LIBDIR})
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${WORK}/consumer ${VERSION})
