#!/bin/bash
# setup.sh GROUP...: makes sure that the Debian packages of the groups are installed. Groups:
# build test bench peers check labs kubernetes browser.
# When nothing is missing it ends at once, without network or root. The one place where our packages are named.
# Exit codes: 0 all there, 2 something is missing that this script cannot install.
set -euo pipefail

# browser: the console's page is tried in a real one; a font, because there is none on a server.
# python3-numpy: a factorization machine of its own, which ours must not be worse than (tests/cluster/fm_reference.py).
# openssh-client: a cluster has a key of its own, made by ssh-keygen.
# strace: kills a launcher at a certain call (tests/cluster/killed_launchers.py).
# iptables, python3-venv: the security groups of an emulated EC2, and the emulator (tests/labs/ec2_lab.py).
# kubernetes: what its nodes run beside its own programs, which tests/labs/kube_build.py builds.
declare -A packages=(
  [build]="g++ cmake ninja-build ccache mold pkg-config libfmt-dev libspdlog-dev libexpected-dev libcli11-dev
           libssl-dev libcurl4-openssl-dev libcpp-httplib-dev libxxhash-dev liblz4-dev libzstd-dev zlib1g-dev
           libprotobuf-dev protobuf-compiler"
  [test]="libgtest-dev libgmock-dev librapidcheck-dev python3 python3-numpy openssl openssh-client strace"
  [bench]="libbenchmark-dev"
  [peers]="python3 python3-venv liblinear-tools"
  [check]="clang-16 clang-format-16 clang-tidy-16 libclang-rt-16-dev python3"
  [labs]="python3 openssl strace docker.io iproute2 util-linux busybox-static openssh-server openssh-client
          procps slurmctld slurmd slurm-client munge debootstrap iptables python3-venv"
  [kubernetes]="python3 python3-venv openssl strace iproute2 util-linux busybox-static procps containerd runc
                containernetworking-plugins iptables"
  [browser]="chromium chromium-driver fonts-dejavu-core python3"
)
# Without dpkg we can only look for programs; headers that are missing will be named by CMake.
declare -A programs=(
  [build]="g++ cmake ninja pkg-config"
  [test]="python3 openssl ssh-keygen strace"
  [bench]=""
  [peers]="python3"
  [check]="clang++-16 clang-format-16 clang-tidy-16 python3"
  [labs]="python3 openssl dockerd docker ip unshare nsenter busybox setpriv sbatch slurmctld slurmd munged debootstrap
          iptables-restore"
  [kubernetes]="python3 openssl ip unshare nsenter busybox setpriv ps containerd ctr runc iptables"
  [browser]="chromium chromedriver python3"
)

[ $# -gt 0 ] || { echo "usage: tools/setup.sh build|test|bench|peers|check|labs|kubernetes|browser ..." >&2; exit 2; }
wanted=() needed=()
for group in "$@"; do
  [ -n "${packages[$group]+known}" ] || { echo "setup: no group '$group'; there are: ${!packages[*]}" >&2; exit 2; }
  # shellcheck disable=SC2206  # the lists are split on purpose
  wanted+=(${packages[$group]}) needed+=(${programs[$group]})
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: this system has no apt; these Debian 12 packages, or what they hold, are wanted:" >&2
  echo "  ${wanted[*]}" >&2
  missing=()
  for program in "${needed[@]}"; do
    command -v "$program" >/dev/null || missing+=("$program")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    echo "setup: not found: ${missing[*]}; install them by your system's package manager and try again" >&2
    exit 2
  fi
  exit 0
fi

# dpkg-query fails for names it has never heard of, but still tells of the others: what it tells is there.
installed=" $({ dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "${wanted[@]}" 2>/dev/null || true; } |
  sed -n 's/^ii //p' | tr '\n' ' ') "
missing=()
for package in "${wanted[@]}"; do
  [[ $installed == *" $package "* ]] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

# One at a time: where apt throws packages away when it updates its lists, a second one takes them from the first.
exec 9<"$0"
if ! flock --nonblock 9; then
  echo "setup: waits for another setup.sh" >&2
  flock --timeout 1800 9 || { echo "setup: the other one has not ended within half an hour" >&2; exit 2; }
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: packages are missing, and this is neither root nor is there sudo. As root:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 2
  fi
  as_root=(sudo)
fi

echo "setup: installing ${#missing[@]} packages: ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Labs start daemons by themselves, in networks of their own: installing them must start none on this machine.
policy=/usr/sbin/policy-rc.d
if [[ " $* " == *" labs "* || " $* " == *" kubernetes "* ]] && [ ! -e $policy ]; then
  trap 'rm -f "$log"; "${as_root[@]}" rm -f $policy' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
  "${as_root[@]}" chmod +x $policy
fi

# apt_get COMMAND...: runs apt-get with its chatter in the log, and shows how far it is: at each tenth. Another apt that
# is at work, such as the daily one of a new machine, is waited for.
apt_get() {
  local shown=-1 tenth
  # apt writes "dlstatus:N:PERCENT:TEXT" and "pmstatus:PACKAGE:PERCENT:TEXT" to descriptor 3. The inner shell opens it,
  # because sudo closes what it is given; `env` is there because sudo drops the environment.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive bash -c 'exec apt-get "$@" 3>&1 1>&2 9<&-' apt-get \
    -y -q -o APT::Status-Fd=3 -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=600 "$@" </dev/null 2>>"$log" |
    while IFS=: read -r kind _ percent _; do
      [[ $kind == dlstatus || $kind == pmstatus ]] || continue
      tenth=${percent%%.*}
      tenth=$((tenth / 10))
      if [ "$tenth" != 0 ] && [ "$kind$tenth" != "$shown" ]; then
        shown=$kind$tenth
        [ "$kind" = dlstatus ] && echo "setup: downloading ${tenth}0%" >&2 || echo "setup: installing ${tenth}0%" >&2
      fi
    done
}
if ! { apt_get update >/dev/null 2>&1 && apt_get install --no-install-recommends "${missing[@]}"; }; then
  tail -n 25 "$log" >&2
  echo "setup: apt-get failed (its last lines are above). Wanted: ${missing[*]}" >&2
  exit 2
fi
echo "setup: done" >&2
