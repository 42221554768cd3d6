# What `make install` puts into PREFIX: the binary, the contract's headers, the rooms as static libraries, and a CMake
# package, so that a program of yours says find_package(pscloud) and links pscloud::pscloud.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(pscloud_library INTERFACE)
set_target_properties(pscloud_library PROPERTIES EXPORT_NAME pscloud)
target_link_libraries(pscloud_library INTERFACE pscloud_engine)

install(TARGETS pscloud RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The name under which users of Poseidon know what `pscloud psd_run` does.
install(CODE "set(bin \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR})
  file(CREATE_LINK pscloud \${bin}/psd_run SYMBOLIC)")
install(DIRECTORY include/pscloud DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS pscloud_library pscloud_engine pscloud_net pscloud_base EXPORT pscloud
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/pscloud)
install(EXPORT pscloud NAMESPACE pscloud:: FILE pscloud-targets.cmake DESTINATION ${PACKAGE_DIR})
configure_package_config_file(cmake/pscloud-config.cmake.in ${CMAKE_BINARY_DIR}/pscloud-config.cmake
  INSTALL_DESTINATION ${PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/pscloud-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/pscloud-config.cmake ${CMAKE_BINARY_DIR}/pscloud-config-version.cmake
  DESTINATION ${PACKAGE_DIR})
