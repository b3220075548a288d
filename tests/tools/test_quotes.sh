#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The code that the READMEs quote is the code that is compiled.
set -eu
cd "${WEIR_SOURCE_DIR:-$(dirname "$0")/../..}"
python3 tools/quote --check README.md README.zh-CN.md
