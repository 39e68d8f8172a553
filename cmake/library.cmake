# SPDX-License-Identifier: Apache-2.0
# The one library that others link, static or shared (BUILD_SHARED_LIBS), and its installation.
# docs/decisions/0010-one-library-with-its-own-names.md says why it is one and why its names
# are these.
set(NETIO_INCLUDE_DIR
    ${CMAKE_INSTALL_INCLUDEDIR}/netio-${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

add_library(netio_daq)
add_library(netio::netio ALIAS netio_daq)
foreach(layer IN ITEMS netio pubsub stream_core stream)
    target_sources(netio_daq PRIVATE $<TARGET_OBJECTS:netio_layer_${layer}>)
endforeach()
set_target_properties(netio_daq PROPERTIES
    LINKER_LANGUAGE CXX
    EXPORT_NAME netio
    OUTPUT_NAME netio-daq
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_include_directories(netio_daq PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${NETIO_UMBRELLA_DIR}>)
target_compile_features(netio_daq PUBLIC cxx_std_20)
target_link_libraries(netio_daq PUBLIC Threads::Threads
    PRIVATE OpenSSL::Crypto PkgConfig::LZ4 PkgConfig::ZSTD ${CMAKE_DL_LIBS})
if(NOT NETIO_SANITIZE)
    # A symbol that nobody defines is an error here and not at a user's.
    target_link_options(netio_daq PRIVATE -Wl,--no-undefined
        -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
    set_target_properties(netio_daq PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
endif()

# What a program says that it uses. There is nothing else behind them.
foreach(part IN ITEMS pubsub stream)
    add_library(netio_daq_${part} INTERFACE)
    add_library(netio::${part} ALIAS netio_daq_${part})
    set_target_properties(netio_daq_${part} PROPERTIES EXPORT_NAME ${part})
    target_link_libraries(netio_daq_${part} INTERFACE netio_daq)
endforeach()

if(NOT NETIO_INSTALL)
    return()
endif()
include(CMakePackageConfigHelpers)
# INCLUDES DESTINATION, not a FILE_SET: CMake below 3.23 does not read those.
install(TARGETS netio_daq netio_daq_pubsub netio_daq_stream EXPORT netio-daq
    INCLUDES DESTINATION ${NETIO_INCLUDE_DIR}
    ARCHIVE COMPONENT development
    LIBRARY COMPONENT runtime NAMELINK_COMPONENT development)
install(CODE "set(NETIO_SOURCE \"${PROJECT_SOURCE_DIR}\")
set(NETIO_INCLUDE_DIR \"${NETIO_INCLUDE_DIR}\")" COMPONENT development)
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake COMPONENT development)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/netio-daq)
install(EXPORT netio-daq NAMESPACE netio:: FILE netio-daqTargets.cmake DESTINATION ${package_dir}
    COMPONENT development)
get_target_property(NETIO_LIBRARY_TYPE netio_daq TYPE)
configure_file(${PROJECT_SOURCE_DIR}/cmake/netio-daqConfig.cmake.in
    ${PROJECT_BINARY_DIR}/netio-daqConfig.cmake @ONLY)
# Before 1.0 a minor version may break its users.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/netio-daqConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/netio-daqConfig.cmake
    ${PROJECT_BINARY_DIR}/netio-daqConfigVersion.cmake
    DESTINATION ${package_dir} COMPONENT development)

# Relative to the file, so that the installed tree can be moved.
file(RELATIVE_PATH prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" prefix ${prefix})
file(RELATIVE_PATH libdir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
cmake_path(ABSOLUTE_PATH NETIO_INCLUDE_DIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
    OUTPUT_VARIABLE includedir)
file(RELATIVE_PATH includedir ${CMAKE_INSTALL_PREFIX} ${includedir})
# A static library cannot bring along by itself what it is made with.
set(others "libcrypto >= ${NETIO_OPENSSL_MINIMUM}, liblz4, libzstd")
set(requires "")
set(requires_private "")
if(NETIO_LIBRARY_TYPE STREQUAL "STATIC_LIBRARY")
    set(requires ${others})
else()
    set(requires_private ${others})
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/netio-daq.pc.in
    ${PROJECT_BINARY_DIR}/netio-daq.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/netio-daq.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}
    COMPONENT runtime)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/apps/examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
    COMPONENT development FILES_MATCHING PATTERN "*.cpp" PATTERN "*.hpp")
