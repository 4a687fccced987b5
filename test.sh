#!/usr/bin/env bash
# Installs missing dependencies, builds all targets, and runs all tests except those labelled slow.
# Arguments are passed to ctest:  ./test.sh -R costmodel    ./test.sh -L sim    ./test.sh -L slow (only the slow tests)
# ./test.sh -L oracle also installs ns-3, for tests/oracles; ./test.sh -L slurm also installs Slurm, for the job scripts in
# experiments/slurm. Without these arguments the tests that need a missing package are skipped.
# FOMOE_WERROR=ON ./test.sh turns compiler warnings into errors.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,6s/^# //p' "$0"; exit 0 ;; esac
. "$(dirname "${BASH_SOURCE[0]}")/tools/setup.sh"

packages+=(python3-dev xz-utils)  # to build the Python module; to test measure_gpu.sh --pack
case " $* " in *" -L oracle "*) packages+=("${oracle_packages[@]}") ;; esac
case " $* " in *" -L slow "*) packages+=("${probe_packages[@]}") ;; esac
case " $* " in *" -L slurm "*) packages+=("${slurm_packages[@]}") ;; esac
prepare
install_packages "${packages[@]}"
install_venv cuda
install_test_requirements
configure_release -DFOMOE_TRAINER=ON -DFOMOE_CUDA=ON
build_release
has_gpu || say "No NVIDIA GPU found: the tests labelled gpu are skipped"
without=(-LE slow)
case " $* " in *" slow "* | *" slurm "*) without=() ;; esac
say "Running the tests"
exec ctest --preset release -j "$(nproc)" "${without[@]}" "$@"
