# SPDX-License-Identifier: MIT
# bench/bench_*.c is one program each; the other files of bench/ belong to all of them. The
# peers come from distribution packages and are loaded beside each other at run time, so only
# their presence is asked for here, and that of valgrind, which counts instructions. Traces are
# read with the command's parser.

find_library(WEIR_JEMALLOC jemalloc)
find_library(WEIR_MIMALLOC mimalloc)
find_path(WEIR_VALGRIND valgrind/callgrind.h)
mark_as_advanced(WEIR_JEMALLOC WEIR_MIMALLOC WEIR_VALGRIND)

set(bench_default OFF)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND WEIR_JEMALLOC AND WEIR_MIMALLOC AND WEIR_VALGRIND)
    set(bench_default ON)
endif()
option(WEIR_BENCH "Build the benchmarks" ${bench_default})

if(WEIR_BENCH AND TARGET weir_command)
    file(GLOB bench_programs CONFIGURE_DEPENDS bench/bench_*.c)
    file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c)
    if(bench_programs)
        list(REMOVE_ITEM bench_sources ${bench_programs})
    endif()
    foreach(source IN LISTS bench_programs)
        cmake_path(GET source STEM name)
        add_executable(${name} ${source} ${bench_sources})
        weir_flags(${name})
        target_link_libraries(${name} PRIVATE
            weir_command_objects weir_tensor weir Threads::Threads ${CMAKE_DL_LIBS} m)
        set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY bench)
    endforeach()
endif()
