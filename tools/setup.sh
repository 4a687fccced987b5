#!/usr/bin/env bash
# Functions that install the missing dependencies of fomoe and build it. demo.sh, test.sh and tools/lint.sh source this file.
# As a program, this file installs the dependencies and builds nothing:
#   bash tools/setup.sh        installs the dependencies of the tests and of fomoe-train for GPUs (a download of 2.5 GB)
#   bash tools/setup.sh cpu    installs the dependencies of fomoe-train for the CPU only (0.55 GB)
#
#   Debian packages   are installed by apt-get (with sudo unless root), and only if one is missing
#   .venv/            holds LibTorch and nvcc from PyPI, installed with your own pip configuration
#   .cache/           holds logs, the compiler cache, and downloads that are not yet installed
#
# Nothing outside the repository is written except Debian packages. The next run carries on after an interruption.

fomoe_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
packages=(g++ cmake ninja-build pkg-config ccache python3 python3-venv
  libsimgrid-dev nlohmann-json3-dev librapidcheck-dev doctest-dev libfmt-dev libeigen3-dev libbenchmark-dev
  libboost-dev libboost-program-options-dev libtomlplusplus-dev libgloo-dev libssl-dev libjs-chart.js)
oracle_packages=(libns3-dev)  # only for ./test.sh -L oracle
probe_packages=(iperf3)  # fomoe probe; only for ./test.sh -L slow
slurm_packages=(slurmctld slurmd slurm-client)  # only for ./test.sh -L slurm
# For GPUs: PyTorch with all it depends on, and the compiler.
cuda_wheels=("torch==2.11.0" "cuda-toolkit[nvcc,crt,nvvm,cccl]==13.0.2")
# For the CPU: PyTorch's libraries, and the two libraries of NVIDIA's that libtorch_cpu.so is linked to, nothing that these
# depend on. The versions are those that cuda-toolkit 13.0.2 asks for, so that adding the rest later replaces nothing.
cpu_wheels=("torch==2.11.0" "nvidia-cuda-cupti==13.0.85" "nvidia-cuda-runtime==13.0.96")

log_dir=$fomoe_root/.cache/logs
venv=$fomoe_root/.venv
watcher=
download=

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }
fail() {  # each argument is a line
  printf '\n' >&2
  printf '%s\n' "$@" >&2
  exit 1
}

on_interrupt() {
  printf '\nInterrupted. Run the same command again to continue from here.\n' >&2
  exit 130
}
on_exit() {
  [ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
  [ -z "$download" ] || kill -- "-$download" 2>/dev/null || true
}

# Debian's programs go before others on the PATH (conda, pyenv), so that every machine builds alike.
prepare() {
  cd "$fomoe_root" || exit 1
  export PATH=/usr/bin:/bin:$PATH LC_ALL=C.UTF-8
  trap on_interrupt INT TERM
  trap on_exit EXIT
  mkdir -p "$log_dir" .cache/tmp
}

# logged NAME COMMAND…: output goes to .cache/logs/NAME.log; every 15 s one line says how far it is. progress=FUNCTION
# before it prints that line (FUNCTION LOG SECONDS); without one it is the log's last line.
logged() {
  local log=$log_dir/$1.log status=0 progress=${progress:-last_line} begin=$SECONDS
  shift
  : >"$log"
  (
    parent=$$ nap=
    trap 'kill "$nap"; exit' TERM  # a sleep left behind would keep a pipe that reads our output open
    while sleep 15 >/dev/null & nap=$!; wait "$nap" && kill -0 "$parent"; do
      say "  … $("$progress" "$log" $((SECONDS - begin)))"
    done
  ) 2>/dev/null &
  watcher=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  kill "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  watcher=
  return "$status"
}
last_line() { tail -c 400 "$1" | tr '\r' '\n' | grep -v '^ *$' | tail -n 1 | cut -c 1-100; }

# ninja's "[120/310] Building …": the rest is taken to go as fast as what is done.
build_progress() {  # LOG SECONDS
  local done_count all left
  IFS=/ read -r done_count all < <(grep -oE '^\[[0-9]+/[0-9]+\]' "$1" | tail -n 1 | tr -d '[]') || { printf 'starting\n'; return; }
  if [ $((20 * done_count)) -lt "$all" ]; then printf 'built %d of %d\n' "$done_count" "$all"; return; fi
  left=$(($2 * (all - done_count) / done_count))
  if [ "$left" -ge 90 ]; then left="$(((left + 30) / 60)) min"; else left="$left s"; fi
  printf 'built %d of %d, about %s left\n' "$done_count" "$all" "$left"
}

# pip keeps wheels in TMPDIR until all are there.
download_progress() {  # LOG SECONDS
  local mib
  if grep -q '^Installing collected' "$1"; then printf 'unpacking into .venv\n'; return; fi
  mib=$(du -cm "$fomoe_root"/.cache/tmp/pip-unpack-* 2>/dev/null | tail -n 1 | cut -f 1)
  printf 'downloaded %d of about %d MB\n' "${mib:-0}" "$download_mb"
}

show_log() {  # NAME [LINES]
  printf '\n--- the last lines of .cache/logs/%s.log\n' "$1" >&2
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

can_install() {  # PACKAGE
  [ -n "$(missing_packages "$1")" ] || return 0
  apt-cache show "$1" >/dev/null 2>&1 && return 0
  logged apt-update apt_get update || true  # the lists may never have been fetched
  apt-cache show "$1" >/dev/null 2>&1
}

apt_failed() {  # WHAT
  local cause
  cause=$(grep -hE '^(E|W|Err):' "$log_dir"/apt-update.log "$log_dir/apt.log" 2>/dev/null | awk '!seen[$0]++' | head -n 5 || true)
  show_log apt 15
  fail "$1 failed.${cause:+ apt-get reports:}" ${cause:+"$cause"} "" \
    "Possible remedies:" \
    "  - no network: connect this machine, and run the same command again (it continues from here);" \
    "  - a proxy:    export http_proxy=http://HOST:PORT https_proxy=http://HOST:PORT, and run the same command again;" \
    "  - 'Unable to locate package': use Debian 12 or 13 (main) or Ubuntu 24.04 (main and universe);" \
    "  - manually:   apt-get update && apt-get install --no-install-recommends ${to_install[*]}"
}

install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    fail "This system has no apt-get, but this script needs Debian 12 or 13 or Ubuntu 24.04 (a container is enough)." \
      "On another system, install the equivalents of: ${packages[*]}" \
      "Then run: cmake --preset dev && cmake --build --preset dev    (builds fomoe without fomoe-train)"
  fi
  local to_install
  mapfile -t to_install < <(missing_packages "$@")
  [ ${#to_install[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "Debian packages are missing, and sudo is not installed. As root, run" \
      "  apt-get update && apt-get install --no-install-recommends ${to_install[*]}" "and then run the same command again."
    sudo -n true 2>/dev/null || { say "sudo needs your password to install Debian packages:"; sudo -v; } ||
      fail "Without root access, ask an administrator to run" "  apt-get install --no-install-recommends ${to_install[*]}" "and then run the same command again."
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

# .venv holds the wheels of one KIND: cpu, or cuda, which includes cpu. .venv/fomoe-stamp is written last and names them.
# Of cuda, the stamp's last line stands for link_cuda: a stamp from before it is not enough.
stamp_text() {  # KIND
  if [ "$1" = cpu ]; then printf '%s\n' "${cpu_wheels[@]}"; else printf '%s\n' "${cuda_wheels[@]}" "lib64 libcudart.so"; fi
}
venv_has() {  # KIND
  local stamp
  stamp=$(cat "$venv/fomoe-stamp" 2>/dev/null) && [ -x "$venv/bin/python" ] || return 1
  [ "$stamp" = "$(stamp_text cuda)" ] || [ "$stamp" = "$(stamp_text "$1")" ]
}

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
venv_is_whole() {  # KIND
  local wheels=("${cuda_wheels[@]}" nvidia-cuda-{nvcc,crt,cccl,runtime})
  [ "$1" = cuda ] || wheels=("${cpu_wheels[@]}")
  [ -x "$venv/bin/python" ] && "$venv/bin/python" - "${wheels[@]}" <<'PYTHON' >>"$log_dir/venv.log" 2>&1
import importlib.metadata as metadata, re, sys
problems = []
for wheel in sys.argv[1:]:
    name, version = re.fullmatch(r"([\w-]+)(?:\[.*\])?(?:==(.+))?", wheel).groups()
    try:
        installed = metadata.version(name).split("+")[0]
    except metadata.PackageNotFoundError:
        installed = "nothing"
    if installed == "nothing" or version not in (None, installed):
        problems.append(f"{name}: {version or 'any version'} is required, but {installed} is installed")
for package in metadata.distributions():
    if package.files is None:
        problems.append(f"{package.metadata['Name']}: its list of files is missing")
        continue
    for file in package.files:
        path = file.locate()
        if not path.exists() and path.suffix != ".pyc":
            problems.append(f"{package.metadata['Name']}: {file} is missing")
        elif file.size is not None and path.suffix != ".pyc" and path.stat().st_size != file.size:
            problems.append(f"{package.metadata['Name']}: {file} is truncated")
print("\n".join(problems[:20]) or "complete")
sys.exit(bool(problems))
PYTHON
}

pip_failed() {
  local what cause
  what=$(grep -oE '^ *(Collecting|Downloading) [^ ]+' "$log_dir/pip.log" | tail -n 1 | awk '{print $2}' || true)
  cause=$(grep -E '^ *ERROR|No space left' "$log_dir/pip.log" | tail -n 3 || true)
  show_log pip 15
  fail "Downloading ${what:-the Python packages} failed.${cause:+ pip reports:}" ${cause:+"$cause"} "" \
    "Possible remedies:" \
    "  - no network: connect this machine, and run the same command again;" \
    "  - a proxy:    export https_proxy=http://HOST:PORT, and run the same command again;" \
    "  - a mirror:   pip config set global.index-url URL, and run the same command again;" \
    "  - 'No space left': free at least $needed_gib GB."
}

install_venv() {  # KIND
  local kind=$1 wheels=("${cpu_wheels[@]}") options=(--no-deps) download_mb=545 needed_gib=3
  venv_has "$kind" && return 0
  if [ "$kind" = cuda ]; then wheels=("${cuda_wheels[@]}") options=() download_mb=2500 needed_gib=12; fi
  : >"$log_dir/venv.log"
  if [ -e "$venv" ]; then
    if venv_is_whole "$kind"; then
      [ "$kind" = cpu ] || link_cuda
      stamp_text "$kind" >"$venv/fomoe-stamp"
      return 0
    fi
    if ! venv_is_whole cpu; then
      say ".venv is incomplete or has other versions ($(tail -n 1 "$log_dir/venv.log")); creating it again"
      rm -rf "$venv"
    fi
    [ ! -e "$venv" ] || download_mb=2150  # PyTorch itself is there
  fi
  local free_gib
  free_gib=$(df --output=avail -B1G . | tail -n 1 | tr -d ' ')
  [ "$free_gib" -ge "$needed_gib" ] || say "Note: this folder has only $free_gib GiB of free space; the installation needs $needed_gib GiB"
  say "Downloading ${wheels[*]} into .venv (about $download_mb MB)"
  [ -e "$venv" ] || logged pip /usr/bin/python3 -m venv "$venv" || { show_log pip; fail "Creating the Python environment in .venv failed."; }
  local own_cache=
  [ -n "${PIP_CACHE_DIR:-}" ] || own_cache=$fomoe_root/.cache/pip
  rm -rf .cache/tmp/pip-unpack-*  # of an interrupted run: pip takes whole wheels from its cache, and never these
  progress=download_progress logged pip env TMPDIR="$fomoe_root/.cache/tmp" PIP_USER=0 PIP_CACHE_DIR="${PIP_CACHE_DIR:-$own_cache}" \
    "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off "${options[@]}" "${wheels[@]}" || pip_failed
  venv_is_whole "$kind" || { show_log venv; fail "pip succeeded, but .venv is incomplete. Remove .venv and run the same command again."; }
  [ "$kind" = cpu ] || link_cuda
  stamp_text "$kind" >"$venv/fomoe-stamp"
  [ -z "$own_cache" ] || rm -rf "$own_cache"
}

# Downloads in the background, in a process group of its own, which on_exit ends. Its messages come with finish_download.
start_download() {  # KIND
  setsid bash tools/setup.sh "$1" >"$log_dir/download.log" 2>&1 </dev/null &
  download=$!
}
finish_download() {
  local status=0 waited=0
  while kill -0 "$download" 2>/dev/null; do
    [ $((waited++ % 15)) -gt 0 ] || say "  … $(download_line)"
    sleep 1
  done
  wait "$download" || status=$?
  download=
  [ "$status" = 0 ] || { cat "$log_dir/download.log" >&2; exit "$status"; }
}
download_line() { tail -n 1 "$log_dir/download.log" | sed 's/^\[[ 0-9]* s\] *\(… \)\?//'; }  # without time and dots

# What draws the notebooks and builds the Python module, for their tests; demo.sh does without.
install_test_requirements() {
  local stamp=$venv/tests-stamp wanted=(notebooks/requirements.txt tests/python/requirements.txt)
  cat "${wanted[@]}" | cmp -s - "$stamp" && return 0
  say "Downloading the Python packages for the tests of the notebooks and the Python module into .venv"
  logged pip env PIP_USER=0 "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off "${wanted[@]/#/-r}" || pip_failed
  cat "${wanted[@]}" >"$stamp"
}

# --- Building ---------------------------------------------------------------------------------------------------------

# configure_release [-DNAME=VALUE…]: the folder keeps what is not given. FOMOE_WERROR=ON in the environment makes warnings
# errors from then on.
configure_release() {
  local build=build/release
  # A build folder that came along with a copied or moved repository points to the old place.
  if [ -e $build/CMakeCache.txt ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$fomoe_root" $build/CMakeCache.txt; then
    rm -rf $build
  fi
  logged configure cmake --preset release "$@" ${FOMOE_WERROR:+"-DFOMOE_WERROR=$FOMOE_WERROR"} ||
    { show_log configure; fail "Configuring the build failed (full log: .cache/logs/configure.log)."; }
}

# build_release [TARGET…]: all targets by default.
build_release() {
  local jobs memory_gib
  jobs=$(nproc)
  memory_gib=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1048576))
  [ "$jobs" -le $((memory_gib / 2)) ] || jobs=$((memory_gib / 2))  # one file that includes LibTorch takes up to 2 GiB
  [ "$jobs" -ge 1 ] || jobs=1
  jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$jobs}
  say "Building ${*:-all targets} in build/release with $jobs jobs"
  progress=build_progress logged build cmake --build --preset release --parallel "$jobs" ${1:+--target "$@"} || {
    printf '\n--- .cache/logs/build.log\n' >&2
    sed -n '/^FAILED:/,$p' "$log_dir/build.log" | cut -c 1-400 | head -n 60 >&2
    fail "The build failed (full log: .cache/logs/build.log)."
  }
}

# The kind of fomoe-train for this machine: for GPUs if there is one, or if all that it needs is installed anyway.
trainer_kind() { if has_gpu || venv_has cuda; then printf cuda; else printf cpu; fi; }
has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; }

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  set -euo pipefail
  case ${1:-cuda} in
    cpu | cuda) ;;
    *) printf 'tools/setup.sh: got %s; expected cpu, cuda or no argument (which means cuda); for example bash tools/setup.sh cpu\n' "$1" >&2; exit 2 ;;
  esac
  prepare
  install_packages "${packages[@]}"
  install_venv "${1:-cuda}"
  say "The dependencies of fomoe are installed."
fi
