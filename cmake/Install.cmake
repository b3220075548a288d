# SPDX-License-Identifier: MIT
# What `cmake --install` lays down: headers, libraries, the command, manual pages, completions,
# pkg-config files and the CMake package (weir::weir, weir::tensor).
include(CMakePackageConfigHelpers)

install(TARGETS weir weir_tensor EXPORT weir-targets)
install(DIRECTORY include/weir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
install(EXPORT weir-targets NAMESPACE weir:: DESTINATION ${package_folder})
configure_package_config_file(cmake/weir-config.cmake.in weir-config.cmake
    INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(weir-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/weir-config.cmake
    ${PROJECT_BINARY_DIR}/weir-config-version.cmake
    DESTINATION ${package_folder})

foreach(name weir weir-tensor)
    configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

if(TARGET weir_command)
    install(TARGETS weir_command)
    file(GLOB man_pages CONFIGURE_DEPENDS man/*.1)
    install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES completions/weir.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME weir)
    install(FILES completions/_weir DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES completions/weir.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
