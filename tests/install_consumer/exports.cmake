# SPDX-License-Identifier: Apache-2.0
execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND ${PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/exported_symbols.py ${SOURCE}
        ${PREFIX}/${LIBDIR}/libnetio-daq.so)
