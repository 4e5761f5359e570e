#!/bin/bash
#SBATCH --job-name=automl
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=4
#SBATCH --time=12:00:00
#SBATCH --signal=B:TERM@120
# A Ray cluster of the job's own on its machines, and one search on it. The arguments are those of `automl search`:
#   sbatch deploy/slurm.sh --space nas_small --study team --trials 500
# Two minutes before the time is over the search pauses its trials; the same command goes on with the study.
set -euo pipefail

: "${AUTOML_STORAGE:?set it to the URL of a PostgreSQL, such as postgresql+psycopg://me@db.example.com/studies}"
: "${AUTOML_ARTIFACTS:?set it to a folder or store that all machines share, such as /nfs/automl or s3://BUCKET/runs}"

port=$((20000 + SLURM_JOB_ID % 20000)) # jobs that share a machine do not meet
address="$(hostname):$port"
RAY_AUTH_TOKEN="$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')"
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN RAY_USAGE_STATS_ENABLED=0
log="$(mktemp)"
nodes=()

# `ray stop` would also end the Ray of other jobs on these machines.
end_nodes() {
    kill "${nodes[@]}" 2>/dev/null || true
    wait
    rm -f "$log"
}
trap end_nodes EXIT

common=(--block "--num-cpus=$SLURM_CPUS_ON_NODE" "--temp-dir=/tmp/ray-$SLURM_JOB_ID")
ray start --head "--port=$port" --include-dashboard=false "${common[@]}" >"$log" 2>&1 &
nodes+=($!)
until grep -q "Ray runtime started" "$log"; do
    kill -0 "${nodes[0]}" || { cat "$log" >&2; exit 1; }
    sleep 0.2
done
mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
for host in "${hosts[@]:1}"; do # this script runs on the first one
    srun --nodes=1 --ntasks=1 --overlap "--nodelist=$host" ray start "--address=$address" "${common[@]}" &
    nodes+=($!)
done

automl search --ray-address "$address" --wait-for-nodes 120 "$@" &
search=$!
trap 'kill -TERM "$search"' TERM
code=0
wait "$search" || code=$?
while kill -0 "$search" 2>/dev/null; do # a signal has ended `wait`, and the search is on its way out
    code=0
    wait "$search" || code=$?
done
exit "$code"
