#!/usr/bin/env bash
# replica.sh NAME starts a janusd in the background that shares the work with others, as a
# Pod of the Deployment does. Its log and its pid are left in janus-scale-out-UID
# below $TMPDIR, which is the user's own.
set -euo pipefail
dir=${TMPDIR:-/tmp}/janus-scale-out-$UID
mkdir -m 700 -p "$dir"
if [[ ! -O $dir ]]; then
  echo "$dir belongs to another user: set TMPDIR to a directory of yours" >&2
  exit 1
fi
namespace=$(kubectl config view --minify -o jsonpath='{..namespace}')
janusd --leader-elect --shards=8 --leader-elect-lease-duration=6s \
  --namespace="${namespace:-default}" --watch-namespaces="${namespace:-default}" \
  --metrics-bind-address=0 --health-probe-bind-address=0 >"$dir/$1.log" 2>&1 &
echo $! >"$dir/$1.pid"
