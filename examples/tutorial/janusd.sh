#!/usr/bin/env bash
# janusd.sh start|kill starts a janusd in the background that runs the Transactions of the
# current namespace, or kills it without a warning. Its log is in janus-tutorial below $TMPDIR.
set -euo pipefail
dir=${TMPDIR:-/tmp}/janus-tutorial
mkdir -p "$dir"
case $1 in
start)
  namespace=$(kubectl config view --minify -o jsonpath='{..namespace}')
  janusd --namespace="${namespace:-default}" --watch-namespaces="${namespace:-default}" \
    --metrics-bind-address=0 --health-probe-bind-address=0 >>"$dir/log" 2>&1 &
  echo $! >"$dir/pid"
  ;;
kill) kill -9 "$(cat "$dir/pid")" ;;
*) echo "usage: janusd.sh start|kill" >&2 && exit 2 ;;
esac
