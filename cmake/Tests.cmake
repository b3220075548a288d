# SPDX-License-Identifier: MIT
# What ctest runs:
#   tests/<folder>/test_*.c     one cmocka program each, which sees the private headers; the
#                               folder's other C files, and tests/support, belong to all of them;
#                               tests/manager has support.c of tests/core
#   tests/**/test_*.sh, .py     scripts, with WEIR (the command), WEIR_SOURCE_DIR,
#                               WEIR_BUILD_DIR and WEIR_SANITIZE (its sanitizers) set; they exit
#                               77 to be skipped
#   tests/scenarios/*.scn       `weir scenario FILE`
#   tests/plugin/plugin.c       a plug-in with the library in it, for tests/core/test_unload.c
#   examples/*.c                must end well
#   tests/fuzz/fuzz_*.c         libFuzzer programs (Clang, WEIR_FUZZ), each over its corpus
# With WEIR_SOAK=1 in the environment tests run longer, with WEIR_BLESS=1 golden files are
# written anew.

find_path(CMOCKA_INCLUDE cmocka.h REQUIRED)
find_library(CMOCKA_LIBRARY cmocka REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
mark_as_advanced(CMOCKA_INCLUDE CMOCKA_LIBRARY)

set(test_environment
    WEIR_SOURCE_DIR=${PROJECT_SOURCE_DIR}
    WEIR_BUILD_DIR=${PROJECT_BINARY_DIR}
    WEIR_SANITIZE=${WEIR_SANITIZE}
    CC=${CMAKE_C_COMPILER}
    PYTHONDONTWRITEBYTECODE=1
    WEIR_SANITIZE=${WEIR_SANITIZE}
    ASAN_OPTIONS=allow_addr2line=1:detect_stack_use_after_return=1:strict_string_checks=1
    UBSAN_OPTIONS=allow_addr2line=1:print_stacktrace=1
    TSAN_OPTIONS=allow_addr2line=1:halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:report_signal_unsafe=0)
if(TARGET weir_command)
    list(APPEND test_environment WEIR=$<TARGET_FILE:weir_command>)
endif()

# What tools/setup_webgpu has fetched: Dawn and Vulkan in software, for tests of the WebGPU driver.
# Without it they are skipped, and say so.
set(webgpu_folder ${PROJECT_SOURCE_DIR}/build/webgpu)
if(EXISTS ${webgpu_folder}/libwebgpu_dawn.so)
    list(APPEND test_environment
        WEIR_WEBGPU_LIBRARY=${webgpu_folder}/libwebgpu_dawn.so
        VK_ICD_FILENAMES=${webgpu_folder}/lvp_icd.json
        XDG_RUNTIME_DIR=${webgpu_folder})
endif()

# weir_add_test(NAME COMMAND...): one test.
function(weir_add_test name)
    add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES
        ENVIRONMENT "${test_environment}"
        SKIP_RETURN_CODE 77)
endfunction()

# "tests/pool/test_arena.c" -> "pool.arena"
function(weir_test_name path result)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests)
    cmake_path(REMOVE_EXTENSION path)
    string(REGEX REPLACE "(^|/)(test|fuzz)_" "\\1" path "${path}")
    string(REPLACE "/" "." path "${path}")
    set(${result} "${path}" PARENT_SCOPE)
endfunction()

# How everything is compiled that sees the private headers.
function(weir_test_flags target)
    weir_flags(${target})
    target_include_directories(${target} PRIVATE
        include src tests ${CMOCKA_INCLUDE} ${CJSON_INCLUDE})
endfunction()

# weir_test_objects(TARGET SOURCE...): what several programs share, compiled once.
function(weir_test_objects target)
    add_library(${target} OBJECT ${ARGN})
    weir_test_flags(${target})
endfunction()

# Private symbols are linked as objects: those of the core, of the tensor layer where the folder
# is about that, and of the command where it is about that.
function(weir_test_program target folder)
    add_executable(${target} ${ARGN})
    weir_test_flags(${target})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY tests)
    set(objects weir_objects)
    if(folder MATCHES "^(tensor|kernel|cli|fuzz)$")
        list(APPEND objects weir_tensor_objects)
    endif()
    if(folder MATCHES "^(cli|fuzz)$" AND TARGET weir_command_objects)
        list(APPEND objects weir_command_objects)
    endif()
    target_link_libraries(${target} PRIVATE
        ${objects} test_support ${CMOCKA_LIBRARY} ${CJSON_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS} m)
endfunction()

# A libcuda over host memory, which tests of the CUDA driver find in WEIR_FAKE_CUDA.
# A second one has the 24 GiB that the scenarios want.
file(GLOB fake_sources CONFIGURE_DEPENDS tests/driver/fake/*.c)
foreach(fake IN ITEMS fake_cuda fake_cuda_large)
    add_library(${fake} MODULE ${fake_sources})
    weir_flags(${fake})
    target_include_directories(${fake} PRIVATE include src)
    target_link_libraries(${fake} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
    set_target_properties(${fake} PROPERTIES
        PREFIX "" OUTPUT_NAME libcuda SUFFIX .so.1
        LIBRARY_OUTPUT_DIRECTORY tests/${fake})
endforeach()
target_compile_definitions(fake_cuda_large PRIVATE "FAKE_CAPACITY_BYTES=((uint64_t)24 << 30)")
list(APPEND test_environment WEIR_FAKE_CUDA=$<TARGET_FILE:fake_cuda>
    WEIR_FAKE_CUDA_LARGE=$<TARGET_FILE:fake_cuda_large>)

file(GLOB support CONFIGURE_DEPENDS tests/support/*.c)
weir_test_objects(test_support ${support})
file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true tests/*)
list(FILTER folders EXCLUDE REGEX "/(support|fuzz|scenarios)$")
foreach(path IN LISTS folders)
    cmake_path(GET path FILENAME folder)
    file(GLOB programs CONFIGURE_DEPENDS ${path}/test_*.c)
    file(GLOB shared CONFIGURE_DEPENDS ${path}/*.c)
    if(NOT programs)
        continue()
    endif()
    list(REMOVE_ITEM shared ${programs})
    if(folder STREQUAL "manager")
        list(APPEND shared tests/core/support.c)
    endif()
    if(shared)
        weir_test_objects(test_${folder} ${shared})
        set(shared $<TARGET_OBJECTS:test_${folder}>)
    endif()
    foreach(source IN LISTS programs)
        weir_test_name(${source} name)
        weir_test_program(test.${name} ${folder} ${source} ${shared})
        weir_add_test(${name} test.${name})
    endforeach()
endforeach()

# A plug-in that carries the library, for core.unload.
add_library(test_plugin MODULE tests/plugin/plugin.c $<TARGET_OBJECTS:weir_objects>)
weir_flags(test_plugin)
target_include_directories(test_plugin PRIVATE include)
target_link_libraries(test_plugin PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(test_plugin PROPERTIES
    PREFIX "" OUTPUT_NAME plugin LIBRARY_OUTPUT_DIRECTORY tests)
if(TARGET test.core.unload)
    add_dependencies(test.core.unload test_plugin)
endif()

# The operations on the fake GPU. Its kernels are hundreds, compiled once per build folder and
# without sanitizers, so that more builds would show nothing new: driver.cuda_launch runs in all.
if(TARGET test.tensor.ops AND NOT WEIR_SANITIZE)
    weir_add_test(tensor.ops_fake_cuda
        ${CMAKE_COMMAND} -E env
            WEIR_CUDA_LIBRARY=$<TARGET_FILE:fake_cuda> WEIR_NVML_LIBRARY=$<TARGET_FILE:fake_cuda>
            WEIR_NVRTC_LIBRARY=$<TARGET_FILE:fake_cuda>
            WEIR_CUBLAS_LIBRARY=$<TARGET_FILE:fake_cuda>
        $<TARGET_FILE:test.tensor.ops> "cuda__*")
    set_tests_properties(tensor.ops_fake_cuda PROPERTIES TIMEOUT 900)
endif()

weir_add_test(driver.contract_fake_pinned
    ${CMAKE_COMMAND} -E env
        WEIR_CUDA_LIBRARY=$<TARGET_FILE:fake_cuda> WEIR_NVML_LIBRARY=$<TARGET_FILE:fake_cuda>
    $<TARGET_FILE:test.driver.contract> "pinned__*")
weir_add_test(driver.contract_fake_cuda
    ${CMAKE_COMMAND} -E env
        WEIR_CUDA_LIBRARY=$<TARGET_FILE:fake_cuda> WEIR_NVML_LIBRARY=$<TARGET_FILE:fake_cuda>
    $<TARGET_FILE:test.driver.contract> "cuda__*")

weir_add_test(gpu.devices_fake
    ${CMAKE_COMMAND} -E env
        WEIR_CUDA_LIBRARY=$<TARGET_FILE:fake_cuda> WEIR_NVML_LIBRARY=$<TARGET_FILE:fake_cuda>
    $<TARGET_FILE:test.gpu.devices>)

foreach(source IN LISTS examples)
    cmake_path(GET source STEM name)
    weir_add_test(example.${name} example_${name})
endforeach()

if(EXISTS ${webgpu_folder}/libwebgpu_dawn.so AND TARGET example_letting_go)
    weir_add_test(example.letting_go_webgpu example_letting_go webgpu)
endif()

file(GLOB_RECURSE scripts CONFIGURE_DEPENDS tests/test_*.sh tests/test_*.py)
if(WEIR_SANITIZE)
    list(FILTER scripts EXCLUDE REGEX "/tests/tools/") # they run nothing that is built here
endif()
foreach(script IN LISTS scripts)
    weir_test_name(${script} name)
    if(script MATCHES "\\.py$")
        weir_add_test(${name} Python3::Interpreter ${script})
    else()
        weir_add_test(${name} bash ${script})
    endif()
endforeach()

if(TEST cli.traces)
    set_tests_properties(cli.traces PROPERTIES LABELS traces)
endif()

# Scenarios named in tests/scenarios/pending.txt need what is not there yet: they must fail, so
# that a line that has become untrue is noticed.
file(GLOB scenarios CONFIGURE_DEPENDS tests/scenarios/*.scn)
set(pending "")
if(EXISTS ${PROJECT_SOURCE_DIR}/tests/scenarios/pending.txt)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS tests/scenarios/pending.txt)
    file(STRINGS tests/scenarios/pending.txt pending REGEX "^[^#]")
    list(TRANSFORM pending REPLACE "[ \t].*" "")
endif()
if(TARGET weir_command)
    foreach(scenario IN LISTS scenarios)
        cmake_path(GET scenario STEM name)
        weir_add_test(scenario.${name} weir_command scenario ${scenario})
        if(name IN_LIST pending)
            set_tests_properties(scenario.${name} PROPERTIES WILL_FAIL TRUE)
        endif()
    endforeach()
endif()

if(WEIR_FUZZ)
    file(GLOB fuzzers CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
    foreach(source IN LISTS fuzzers)
        weir_test_name(${source} name)
        weir_test_program(${name} fuzz ${source})
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        weir_add_test(${name} bash tools/fuzz $<TARGET_FILE:${name}>)
    endforeach()
endif()

# The longest start first, so that none is left to run alone.
foreach(name IN ITEMS scenarios.sweep cli.demo examples.train_digits tensor.ops_fake_cuda
        core.fault_sweep core.model_random cli.traces cli.scenario tensor.ops kernel.cuda
        driver.contract driver.webgpu tensor.webgpu core.storm tensor.gradients fuzz.core
        fuzz.scenario fuzz.trace)
    if(TEST ${name})
        set_tests_properties(${name} PROPERTIES COST 100)
    endif()
endforeach()

# Dawn and Mesa compile hundreds of shaders for these, both without sanitizers, so that more
# builds would show nothing new: with those, tensor.webgpu, driver.webgpu and driver.contract are
# what runs on WebGPU.
if(WEIR_SANITIZE)
    foreach(name IN ITEMS tensor.ops tensor.gradients tensor.programs cli.demo
            examples.train_digits)
        if(TEST ${name})
            set_tests_properties(${name} PROPERTIES
                ENVIRONMENT_MODIFICATION WEIR_WEBGPU_LIBRARY=unset:)
        endif()
    endforeach()
endif()
