#!/usr/bin/env bash
# Installs what fomoe needs and is missing, and builds it. demo.sh, test.sh and .ci/run source this file;
# run by itself (bash tools/setup.sh) it installs and builds nothing.
#
#   Debian packages   by apt-get (with sudo unless root), and only if one is missing
#   .venv/            LibTorch and nvcc from PyPI, with your own pip configuration; .venv/fomoe-stamp is written last
#   .cache/           logs, the compiler cache, and downloads while they are not yet installed
#
# Nothing else outside the repository is written. Interrupt it whenever you like: the next run carries on.

fomoe_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
packages=(g++ cmake ninja-build pkg-config ccache python3 python3-venv
  libsimgrid-dev nlohmann-json3-dev librapidcheck-dev doctest-dev libfmt-dev libeigen3-dev libbenchmark-dev
  libboost-program-options-dev libtomlplusplus-dev libgloo-dev libjs-chart.js)
oracle_packages=(libns3-dev)  # only for ./test.sh -L oracle
probe_packages=(iperf3)  # fomoe probe; only for ./test.sh -L slow
slurm_packages=(slurmctld slurmd slurm-client)  # only for ./test.sh -L slurm
wheels=("torch==2.11.0" "cuda-toolkit[nvcc,crt,nvvm,cccl]==13.0.2")

log_dir=$fomoe_root/.cache/logs
venv=$fomoe_root/.venv
watcher=

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }
fail() {  # each argument is a line
  printf '\n' >&2
  printf '%s\n' "$@" >&2
  exit 1
}

on_interrupt() {
  printf '\nStopped. Run it again to carry on from here.\n' >&2
  exit 130
}
on_exit() { [ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true; }

# What Debian installs goes before what else is on the PATH (conda, pyenv), so that every machine builds alike.
prepare() {
  cd "$fomoe_root" || exit 1
  export PATH=/usr/bin:/bin:$PATH LC_ALL=C.UTF-8
  trap on_interrupt INT TERM
  trap on_exit EXIT
  mkdir -p "$log_dir" .cache/tmp
}

# logged NAME COMMAND…: output goes to .cache/logs/NAME.log; every 30 s one line says where it is.
logged() {
  local log=$log_dir/$1.log status=0
  shift
  : >"$log"
  (
    parent=$$ nap=
    trap 'kill "$nap"; exit' TERM  # a sleep left behind would keep a pipe that reads our output open
    while sleep 30 >/dev/null & nap=$!; wait "$nap" && kill -0 "$parent"; do
      say "  … $(tail -c 400 "$log" | tr '\r' '\n' | grep -v '^ *$' | tail -n 1 | cut -c 1-100)"
    done
  ) 2>/dev/null &
  watcher=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  kill "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  watcher=
  return "$status"
}
show_log() {  # NAME [LINES]
  printf '\n--- the end of .cache/logs/%s.log\n' "$1" >&2
  tail -n "${2:-30}" "$log_dir/$1.log" >&2
}

# --- Debian packages ------------------------------------------------------------------------------------------------

missing_packages() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s\n' "$package"
  done
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

apt_get() {  # sudo drops the environment; a proxy must reach apt-get all the same
  local name keep=(DEBIAN_FRONTEND=noninteractive)
  for name in http_proxy https_proxy HTTP_PROXY HTTPS_PROXY no_proxy; do
    [ -z "${!name:-}" ] || keep+=("$name=${!name}")
  done
  as_root env "${keep[@]}" apt-get -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 "$@"
}

apt_failed() {  # WHAT
  local cause
  cause=$(grep -hE '^(E|W|Err):' "$log_dir"/apt-update.log "$log_dir/apt.log" 2>/dev/null | awk '!seen[$0]++' | head -n 5 || true)
  show_log apt 15
  fail "$1 failed.${cause:+ apt-get says:}" ${cause:+"$cause"} "" \
    "What to do:" \
    "  - no network: connect, and run this again (it carries on from here);" \
    "  - a proxy:    export http_proxy=http://HOST:PORT https_proxy=http://HOST:PORT, and run this again;" \
    "  - 'Unable to locate package': Debian 12 (main) or Ubuntu 24.04 (main and universe) is needed;" \
    "  - by hand:    apt-get update && apt-get install --no-install-recommends ${to_install[*]}"
}

install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    fail "There is no apt-get here: this script needs Debian 12 or Ubuntu 24.04 (a container will do)." \
      "On another system install the equivalents of: ${packages[*]}" \
      "then: cmake --preset dev && cmake --build --preset dev    (fomoe, without fomoe-train)"
  fi
  local to_install
  mapfile -t to_install < <(missing_packages "$@")
  [ ${#to_install[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "Debian packages are missing, and there is no sudo. As root, run" \
      "  apt-get update && apt-get install --no-install-recommends ${to_install[*]}" "and then this again."
    sudo -n true 2>/dev/null || { say "sudo asks for your password, to install Debian packages:"; sudo -v; } ||
      fail "Without root, have an administrator run" "  apt-get install --no-install-recommends ${to_install[*]}" "and then run this again."
  fi
  say "Installing Debian packages: ${to_install[*]}"
  # A list that cannot be fetched need not matter (it may be some third party's); if it does, apt_failed shows it.
  logged apt-update apt_get update || true
  if [ -n "$(dpkg --audit 2>/dev/null)" ]; then  # an earlier installation was interrupted
    logged apt as_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a || apt_failed "Finishing an interrupted installation"
  fi
  logged apt apt_get install -y --no-install-recommends "${to_install[@]}" || apt_failed "Installing Debian packages"
}

# --- LibTorch and nvcc from PyPI --------------------------------------------------------------------------------------

# The last line stands for link_cuda: a stamp from before it is not enough.
stamp_text() { printf '%s\n' "${wheels[@]}" "lib64 libcudart.so"; }

# nvcc looks for libraries in lib64 and linkers for libcudart.so, but the wheels have lib and libcudart.so.13 only. A
# system-wide CUDA toolkit hides that.
link_cuda() {
  local cuda
  for cuda in "$venv"/lib/python3*/site-packages/nvidia/cu13; do
    ln -sfn lib "$cuda/lib64"
    [ -e "$cuda/lib/libcudart.so" ] || ln -s libcudart.so.13 "$cuda/lib/libcudart.so"
  done
}

# Is every file that every installed package lists there, and are the wanted versions among them?
venv_is_whole() {
  [ -x "$venv/bin/python" ] && "$venv/bin/python" - "${wheels[@]}" <<'PYTHON' >>"$log_dir/venv.log" 2>&1
import importlib.metadata as metadata, re, sys
problems = []
for wheel in sys.argv[1:]:
    name, version = re.fullmatch(r"([\w-]+)(?:\[.*\])?==(.+)", wheel).groups()
    try:
        installed = metadata.version(name).split("+")[0]
    except metadata.PackageNotFoundError:
        installed = "nothing"
    if installed != version:
        problems.append(f"{name}: {version} is wanted, {installed} is installed")
for part in ("nvcc", "crt", "cccl", "runtime"):
    try:
        metadata.version(f"nvidia-cuda-{part}")
    except metadata.PackageNotFoundError:
        problems.append(f"nvidia-cuda-{part} is not installed")
for package in metadata.distributions():
    if package.files is None:
        problems.append(f"{package.metadata['Name']}: its list of files is missing")
        continue
    for file in package.files:
        path = file.locate()
        if not path.exists() and path.suffix != ".pyc":
            problems.append(f"{package.metadata['Name']}: {file} is missing")
        elif file.size is not None and path.suffix != ".pyc" and path.stat().st_size != file.size:
            problems.append(f"{package.metadata['Name']}: {file} is cut short")
print("\n".join(problems[:20]) or "whole")
sys.exit(bool(problems))
PYTHON
}

pip_failed() {
  local what cause
  what=$(grep -oE '^ *(Collecting|Downloading) [^ ]+' "$log_dir/pip.log" | tail -n 1 | awk '{print $2}' || true)
  cause=$(grep -E '^ *ERROR|No space left' "$log_dir/pip.log" | tail -n 3 || true)
  show_log pip 15
  fail "Downloading ${what:-the Python packages} (needed: ${wheels[*]}) failed.${cause:+ pip says:}" ${cause:+"$cause"} "" \
    "What to do:" \
    "  - no network: connect, and run this again;" \
    "  - a proxy:    export https_proxy=http://HOST:PORT, and run this again;" \
    "  - a mirror:   pip config set global.index-url URL, and run this again;" \
    "  - 'No space left': 12 GB are needed while installing, 6 GB afterwards."
}

install_venv() {
  [ -x "$venv/bin/python" ] && [ "$(cat "$venv/fomoe-stamp" 2>/dev/null)" = "$(stamp_text)" ] && return 0
  : >"$log_dir/venv.log"
  if [ -e "$venv" ]; then
    if venv_is_whole; then
      link_cuda
      stamp_text >"$venv/fomoe-stamp"
      return 0
    fi
    say ".venv is incomplete or of other versions ($(tail -n 1 "$log_dir/venv.log")); making it again"
    rm -rf "$venv"
  fi
  local free_gib
  free_gib=$(df --output=avail -B1G . | tail -n 1 | tr -d ' ')
  [ "$free_gib" -ge 12 ] || say "Note: only $free_gib GiB are free here; 12 are needed while installing, 6 afterwards"
  say "Downloading ${wheels[*]} into .venv (2.5 GB, 5 GB unpacked: some minutes)"
  logged pip /usr/bin/python3 -m venv "$venv" || { show_log pip; fail "Making a Python environment in .venv failed."; }
  local own_cache=
  [ -n "${PIP_CACHE_DIR:-}" ] || own_cache=$fomoe_root/.cache/pip
  logged pip env TMPDIR="$fomoe_root/.cache/tmp" PIP_USER=0 PIP_CACHE_DIR="${PIP_CACHE_DIR:-$own_cache}" \
    "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off "${wheels[@]}" || pip_failed
  venv_is_whole || { show_log venv; fail "pip ended well, but .venv is not whole. Remove .venv and run this again."; }
  link_cuda
  stamp_text >"$venv/fomoe-stamp"
  [ -z "$own_cache" ] || rm -rf "$own_cache"
}

# What draws the notebooks and builds the Python module, for their tests; demo.sh does without.
install_test_requirements() {
  local stamp=$venv/tests-stamp wanted=(notebooks/requirements.txt tests/python/requirements.txt)
  cat "${wanted[@]}" | cmp -s - "$stamp" && return 0
  say "Downloading what the tests of notebooks and the Python module need into .venv"
  logged pip env PIP_USER=0 "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off "${wanted[@]/#/-r}" || pip_failed
  cat "${wanted[@]}" >"$stamp"
}

# --- Building ---------------------------------------------------------------------------------------------------------

# build_release [TARGET…]
build_release() {
  local build=build/release jobs memory_gib
  # A build folder that came along with a copied or moved repository points to the old place.
  if [ -e $build/CMakeCache.txt ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$fomoe_root" $build/CMakeCache.txt; then
    rm -rf $build
  fi
  logged configure cmake --preset release || { show_log configure; fail "Configuring the build failed (all of it: .cache/logs/configure.log)."; }
  jobs=$(nproc)
  memory_gib=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1048576))
  [ "$jobs" -le $((memory_gib / 2)) ] || jobs=$((memory_gib / 2))  # one file that includes LibTorch takes up to 2 GiB
  [ "$jobs" -ge 1 ] || jobs=1
  say "Building in $build with $jobs jobs (the first time takes minutes)"
  logged build cmake --build --preset release --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$jobs}" ${1:+--target "$@"} || {
    printf '\n--- .cache/logs/build.log\n' >&2
    sed -n '/^FAILED:/,$p' "$log_dir/build.log" | cut -c 1-400 | head -n 60 >&2
    fail "The build failed (all of it: .cache/logs/build.log)."
  }
}

has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; }

setup() {
  prepare
  install_packages "${packages[@]}"
  install_venv
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  set -euo pipefail
  setup
  say "All that fomoe needs is there."
fi
