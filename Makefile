# SPDX-License-Identifier: MIT
# Short names for what CMake does (CMakePresets.json). Every target installs what it needs first.
#   make            the release build; the command is build/weir
#   make demo       the reference experiment on the host driver, or with DEVICE=webgpu on that one,
#                   for which it fetches Dawn and, without a GPU, Vulkan in software
#   make test       everything that must pass before a change goes in
#   make soak       the same tests for hours, the fuzzers ten minutes each
#   make bench      the benchmarks
#   make coverage   lines and branches of the memory core that the tests reach
#   make format     lays out the C files, and renews what the READMEs quote of them
#   make lint       clang-tidy
#   make bless      writes golden files anew from what the command prints now
#   make install    to PREFIX (/usr/local), below DESTDIR if that is set
#   make setup      only installs what `make test` needs
#   make clean      removes build/

SHELL = /bin/bash
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
DEVICE ?= host
DEMO ?=

# $(call build,PRESET,OPTIONS)
build = cmake --preset $(1) $(2) >build/$(1).log || { cat build/$(1).log; exit 1; }; \
	cmake --build --preset $(1) -j $(JOBS)
# $(call test,PRESET,OPTIONS)
test = ctest --preset $(1) -j $(JOBS) --no-label-summary $(2)
# The thread sanitizer of Clang 14 cannot start where the kernel spreads addresses too far.
still = $(shell setarch -R true 2>/dev/null && echo setarch -R)

.PHONY: all demo test soak bench coverage format lint bless install setup clean
.NOTPARALLEL:

all: build
	@tools/setup build
	$(call build,release)
	ln -sfn release/weir build/weir

build:
	mkdir -p build

demo: all
	@case "$(DEVICE)" in webgpu*) tools/setup webgpu && . build/webgpu/env ;; esac; \
		set -x; build/weir demo --device $(DEVICE) $(DEMO)

# The plain build's tests come last, so that ctest's own closing lines end the output.
test: setup all
	tools/check_layers
	tools/format --check
	$(call build,clang)
	tools/check_symbols build/clang
	$(call build,asan)
	$(call test,asan,--timeout 300)
	$(call build,tsan)
	$(still) $(call test,tsan,--timeout 300)
	$(call build,debug)
	$(call test,debug,--timeout 300)

soak: setup build
	$(call build,asan)
	WEIR_SOAK=1 $(call test,asan,--timeout 7200)
	$(call build,tsan)
	WEIR_SOAK=1 $(still) $(call test,tsan,--timeout 7200)
	$(call build,debug)
	WEIR_SOAK=1 $(call test,debug,--timeout 7200)

bench: build
	@tools/setup bench
	$(call build,release,-DWEIR_BENCH=ON)
	bench/run

coverage: build
	@tools/setup coverage
	$(call build,coverage)
	tools/coverage build/coverage

format:
	@tools/setup lint
	tools/format
	tools/quote README.md README.zh-CN.md

lint: build
	@tools/setup lint
	$(call build,debug)
	tools/lint build/debug

bless: setup build
	$(call build,debug)
	WEIR_BLESS=1 $(call test,debug,--timeout 300)

install: all
	$(call build,release,-DCMAKE_INSTALL_PREFIX=$(PREFIX))
	cmake --install build/release

setup:
	@tools/setup test

clean:
	rm -rf build
