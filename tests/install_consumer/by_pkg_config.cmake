# SPDX-License-Identifier: Apache-2.0
# Builds and runs the consumer with the flags of pkg-config.
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

# The same in C.
find_program(CC NAMES gcc cc clang REQUIRED)
execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND ${PKG_CONFIG} --cflags --libs "netio-daq-c = ${VERSION}" OUTPUT_VARIABLE told_c)
separate_arguments(told_c UNIX_COMMAND "${told_c}")
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND_ECHO STDOUT
    COMMAND ${CC} -std=c11 -Wall -Wextra -Wpedantic -Werror ${FLAGS} ${CMAKE_CURRENT_LIST_DIR}/c_consumer/main.c
        -o ${WORK}/c_consumer ${told_c} -Wl,-rpath,${PREFIX}/${LIBDIR})
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${WORK}/c_consumer ${VERSION})

# The two programs of README.md, without a warning of g++ or clang, on a port that is free now.
execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE port COMMAND ${PYTHON} -c
    "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1], end='')")
find_program(CLANG NAMES clang++ clang++-14)
foreach(name IN ITEMS publisher subscriber)
    file(READ ${SOURCE}/apps/examples/${name}.cpp program)
    string(REPLACE ":12345" ":${port}" program "${program}")
    file(WRITE ${WORK}/${name}.cpp "${program}")
    execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND_ECHO STDOUT
        COMMAND ${CXX} -std=c++20 -Wall -Wextra -Werror ${FLAGS} ${WORK}/${name}.cpp
            -o ${WORK}/${name} ${told} -Wl,-rpath,${PREFIX}/${LIBDIR})
    if(CLANG)
        execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND_ECHO STDOUT
            COMMAND ${CLANG} -std=c++20 -Wall -Wextra -Werror -fsyntax-only ${WORK}/${name}.cpp ${told}
                -Wno-unused-command-line-argument)
    endif()
endforeach()
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${PYTHON} -c "
import subprocess
subscriber = subprocess.Popen(['${WORK}/subscriber'], stdout=subprocess.PIPE, text=True)
publisher = subprocess.Popen(['${WORK}/publisher'])
lines = subscriber.communicate(timeout=200)[0].splitlines()
assert publisher.wait() == 0 and subscriber.returncode == 0
assert lines.pop() == '0 messages lost'
assert len(lines) == 1000000 and set(lines) == {'0x1: 8 bytes, lost before: 0'}, (len(lines), set(lines))
")
