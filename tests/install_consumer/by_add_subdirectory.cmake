# SPDX-License-Identifier: Apache-2.0
# Builds and runs the consumer as a project that contains this tree, and has targets of its own that
# are called as our folders are. Not optimised, and as a unity build, which projects set for
# everything that they contain. Install.shared installs what is built here.
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/container -B ${WORK} -G Ninja
        -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=RelWithDebInfo
        -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0 -DNETIO_SOURCE=${SOURCE}
        -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=12
        -DBUILD_SHARED_LIBS=ON -DNETIO_CCACHE=ON -DNETIO_INSTALL=ON -DNETIO_BUILD_C=ON)
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${CMAKE_COMMAND} --build ${WORK})
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${CMAKE_COMMAND} --build ${WORK} --target netio-build/all)
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${WORK}/container ${VERSION})
