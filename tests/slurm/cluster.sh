#!/usr/bin/env bash
# Starts a Slurm cluster on this machine for the time of one command:  tests/slurm/cluster.sh COMMAND…
#
# The cluster's configuration, state and logs are in a temporary folder, which is removed at the end. The script neither
# reads nor writes anything outside of it, and leaves an existing Slurm installation of the machine alone.
# AuthType is auth/none: whoever can reach the cluster's ports can run jobs as the user who started it. The cluster
# therefore listens on the loopback address only, and ends with COMMAND.
# It needs Debian's slurmctld, slurmd and slurm-client. The exit status is COMMAND's, or 77 if Slurm is not installed.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
for program in slurmctld slurmd srun sbatch scontrol; do
  command -v "$program" >/dev/null || { echo "Skipped: $program is not installed; ./test.sh -L slurm installs it"; exit 77; }
done

folder=$(mktemp -d)
controller='' node=''
finish() {
  for process in $node $controller; do kill "$process" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT TERM

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
mkdir "$folder/state" "$folder/spool"
export SLURM_CONF=$folder/slurm.conf
cat >"$SLURM_CONF" <<CONF
ClusterName=one-machine
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
slurmctld -D >/dev/null 2>&1 & controller=$!
slurmd -D >/dev/null 2>&1 & node=$!
for _ in $(seq 150); do
  [ "$(sinfo --noheader --format=%T 2>/dev/null)" = idle ] && break
  sleep 0.2
done
if [ "$(sinfo --noheader --format=%T 2>/dev/null)" != idle ]; then
  echo "The Slurm cluster has not started:" >&2
  tail -n 15 "$folder"/slurm*.log >&2
  exit 1
fi
"$@"
