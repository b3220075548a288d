# SPDX-License-Identifier: MIT
# How every target is compiled.

# C17 without extensions, hidden symbols, the warnings, the check level and the sanitizers.
function(weir_flags target)
    set_target_properties(${target} PROPERTIES
        C_STANDARD 17
        C_STANDARD_REQUIRED ON
        C_EXTENSIONS OFF
        C_VISIBILITY_PRESET hidden)
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes
        $<$<BOOL:${WEIR_WERROR}>:-Werror>)
    target_compile_definitions(${target} PRIVATE WEIR_CHECK=${WEIR_CHECK})
    if(WEIR_SANITIZE)
        target_compile_options(${target} PRIVATE
            -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
        target_link_options(${target} PUBLIC -fsanitize=${WEIR_SANITIZE})
    endif()
    if(WEIR_FUZZ)
        target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
endfunction()
