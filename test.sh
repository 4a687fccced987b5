#!/usr/bin/env bash
# Installs missing dependencies, builds all targets, and runs all tests except those labelled slow.
# ./test.sh FOLDER, with platforms, costmodel, sim, experiments or trainer, installs, builds and runs only what that folder's tests need.
# Other arguments are passed to ctest:  ./test.sh -L quick (half a minute)    ./test.sh -R answers    ./test.sh -L slow (only the slow tests)
# ./test.sh -L oracle also installs ns-3, for tests/oracles; ./test.sh -L slurm also installs Slurm, for the job scripts in
# experiments/slurm. Without these arguments the tests that need a missing package are skipped.
# FOMOE_WERROR=ON ./test.sh turns compiler warnings into errors.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,7s/^# //p' "$0"; exit 0 ;; esac
. "$(dirname "${BASH_SOURCE[0]}")/tools/setup.sh"

folder=
case ${1:-} in platforms | costmodel | sim | experiments | trainer) folder=$1; shift ;; esac
if [ -n "$folder" ]; then
  prepare
  install_packages "${packages[@]}"
  build=build/release
  if [ "$folder" = trainer ]; then
    install_venv cuda
    configure_release -DFOMOE_TRAINER=ON -DFOMOE_CUDA=ON
  elif [ ! -e $build/build.ninja ]; then
    build=build/folders
    logged configure cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DFOMOE_TRAINER=OFF || { show_log configure; exit 1; }
  fi
  say "Building test_$folder in $build"
  progress=build_progress logged build cmake --build $build --target "test_$folder" || { show_log build; exit 1; }
  say "Running its tests"
  exec ctest --test-dir $build --output-on-failure -j "$(nproc)" -R "^$folder(-|\$)" -LE slow "$@"
fi

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
