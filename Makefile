# The front door. Each target sets up what it needs (tools/setup.sh), builds with CMake and Ninja, and shows progress.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
SEEDS ?= 10000
PEERS_FLAGS ?=
TRAIN_FLAGS ?=
BATCH_FLAGS ?=

# What sanitizer runs hold. Docs, install, tidy and the transcripts of the command line are not worth the time there.
SANITIZED := unit|sim|cluster|fuzz|example
SKIP ?= none
# Names of test programs: only these are built and run.
ONLY ?=
space := $(subst ,, )
of_only = $(if $(ONLY),-R '^($(subst $(space),|,$(ONLY)))(_[0-9])?$$')

.PHONY: help build demo test labs test-asan test-tsan test-console test-tensorflow test-kubernetes kills bench bench-peers bench-train bench-quality check check-tests format fuzz sim install clean setup setup-check
.DELETE_ON_ERROR:
.NOTPARALLEL: # Ninja does the parallel part

help: ## this list
	@echo "make TARGET: build and try pscloud. Targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' Makefile | while IFS='|' read -r name text; do \
	  printf '%-14s %s\n' "$$name" "$$text"; done
	@echo "Start with: make demo"

build: build/release/build.ninja ## the binary build/release/pscloud and the examples
	@cmake --build --preset release -j $(JOBS) --target pscloud examples/all
	@echo "built build/release/pscloud"

demo: build ## a small cluster on this machine, explained step by step (under a minute after the build)
	@tools/demo.sh build/release

test: build/release/build.ninja ## all tests but those that need daemons of clusters
	@cmake --build --preset release -j $(JOBS)
	@ctest --preset release -j $(JOBS) -LE '^lab$$'

labs: build ## jobs on real ssh hosts, Docker Swarm, Slurm, HTCondor and an emulated EC2, each in a network of its own (root)
	@tools/setup.sh labs
	@python3 bench/peers/environment.py build/moto tests/labs/requirements-ec2.txt
	@cmake --build --preset release -j $(JOBS)
	@ctest --preset release -j $$(($(JOBS) + 1)) -L '^lab$$'  # they wait more than they work

test-asan: build/dev/build.ninja ## the C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@cmake --build --preset dev -j $(JOBS) $(if $(ONLY),--target $(ONLY))
	@ctest --preset dev -j $(JOBS) -L '^($(SANITIZED))$$' -E '^($(SKIP))$$' $(of_only)

test-tsan: build/tsan/build.ninja ## the C++ tests under ThreadSanitizer
	@cmake --build --preset tsan -j $(JOBS) $(if $(ONLY),--target $(ONLY))
	@ctest --preset tsan -j $(JOBS) -L '^($(SANITIZED))$$' -E '^($(SKIP))$$' $(of_only)

test-console: build/release/build.ninja ## the console's page in a real browser (the first time a 130 MB download)
	@tools/setup.sh browser
	@cmake --build --preset release -j $(JOBS) --target pscloud
	@ctest --preset release -L '^console$$' -V

test-tensorflow: build ## TensorFlow's parameter servers, here and on HTCondor (the first time a 320 MB download)
	@tools/setup.sh peers
	@[ "$$(id -u)" -ne 0 ] || tools/setup.sh labs  # without root the one on HTCondor is skipped
	@python3 bench/peers/environment.py build/tensorflow examples/tensorflow/requirements.txt
	@ctest --preset release -R '^((compat|lab_condor)_tensorflow|compat_tensorboard)_test$$' -V

test-kubernetes: build ## jobs on a real Kubernetes of two nodes (root; the first time it is built in ten minutes)
	@tools/setup.sh kubernetes
	@python3 tests/labs/kube_build.py build/kubernetes
	@ctest --preset release -R '^cluster_Kube' -V

kills: build/release/build.ninja ## kill -9 of 1,000 workers and 1,000 servers while memory is shared (six minutes)
	@cmake --build --preset release -j $(JOBS) --target pscloud lent_worker
	@PSCLOUD_KILLS=1000 PSCLOUD_TEST_SHARED_MEMORY=1 PSCLOUD_BUILD=build/release python3 tests/cluster/zero_copy_test.py

bench: build/release/build.ninja ## measures everything, and names what got slower since the last time
	@cmake --build --preset release -j $(JOBS) --target pscloud bench/all
	@python3 bench/run.py $(BENCH_FLAGS)

bench-peers: build ## the adder beside TensorFlow, Ray and PyTorch: docs/benchmarks.md (a 3 GB download, half an hour)
	@tools/setup.sh peers
	@python3 bench/peers/run.py $(PEERS_FLAGS)

bench-train: build/release/build.ninja ## training from text, beside Vowpal Wabbit and LIBLINEAR: docs/benchmarks.md (eight minutes)
	@tools/setup.sh peers
	@cmake --build --preset release -j $(JOBS) --target pscloud bench/all
	@python3 bench/peers/train.py $(TRAIN_FLAGS)
	@python3 bench/peers/batch.py $(BATCH_FLAGS)

bench-quality: build/release/build.ninja ## AUC and logloss on a9a, of which DATA=FOLDER has LIBSVM's files a9a and a9a.t
	@cmake --build --preset release -j $(JOBS) --target pscloud
	@python3 bench/peers/quality.py $(DATA)/a9a $(DATA)/a9a.t --auc 0.901 --logloss 0.326

check: build/lint/build.ninja ## format, lint (clang-tidy), layering and scripts
	@cmake --preset lint --log-level=ERROR >/dev/null  # nothing is built there, so nobody else sees new sources
	@tools/check.sh $(JOBS)

check-tests: build/lint/build.ninja ## clang-tidy of the tests, too (a quarter of an hour)
	@cmake --preset lint --log-level=ERROR >/dev/null
	@python3 tools/lint.py build/lint $(JOBS) --tests

format: | setup-check ## formats all C++ files
	@git ls-files '*.cc' '*.h' | xargs clang-format-16 -i

fuzz: build/fuzz/build.ninja ## each fuzzer for FUZZ_SECONDS (60)
	@cmake --build --preset fuzz -j $(JOBS) --target fuzzers
	@tools/fuzz.sh build/fuzz $(FUZZ_SECONDS)

sim: build ## the simulator on SEEDS (10000) broken networks
	@build/release/pscloud sim --seeds $(SEEDS)

install: build ## binary, headers and CMake package into PREFIX (/usr/local)
	@cmake --install build/release --prefix $(PREFIX)

clean: ## removes build/
	rm -rf build

setup:
	@tools/setup.sh build test bench
setup-check: setup
	@tools/setup.sh check

# Ninja runs CMake again when a CMakeLists.txt changes, but does not know the presets: make does.
build/%/build.ninja: CMakePresets.json | setup
	@cmake --preset $* --log-level=NOTICE
	@touch $@
build/lint/build.ninja build/fuzz/build.ninja build/dev/build.ninja: | setup-check
