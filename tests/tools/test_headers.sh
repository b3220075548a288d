#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every public header compiles alone, as strict C17 and as C++17.
set -eu
cd "${WEIR_SOURCE_DIR:-$(dirname "$0")/../..}"
for header in include/weir/*.h; do
    name=weir/$(basename "$header")
    echo "#include <$name>" |
        "${CC:-cc}" -std=c17 -pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c -
    echo "#include <$name>" |
        "${CC:-cc}" -std=c++17 -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c++ -
done
