#!/usr/bin/env bash
# janusd.sh start|kill starts a janusd in the background that runs the Transactions of the
# current namespace, and of no other, or kills it without a warning. Its log is in janus-tutorial-UID
# below $TMPDIR, which is the user's own.
set -euo pipefail
dir=${TMPDIR:-/tmp}/janus-tutorial-$UID
mkdir -m 700 -p "$dir"
if [[ ! -O $dir ]]; then
  echo "$dir belongs to another user: set TMPDIR to a directory of yours" >&2
  exit 1
fi
case $1 in
start)
  namespace=$(kubectl config view --minify -o jsonpath='{..namespace}')
  janusd --namespace="${namespace:-default}" --watch-namespaces="${namespace:-default}" \
    --metrics-bind-address=0 --health-probe-bind-address=0 >>"$dir/log" 2>&1 &
  echo $! >"$dir/pid"
  ;;
kill)
  if [[ ! -e $dir/pid ]]; then
    echo "no janusd has been started from here: examples/tutorial/janusd.sh start" >&2
    exit 1
  fi
  kill -9 "$(cat "$dir/pid")"
  ;;
*) echo "usage: janusd.sh start|kill" >&2 && exit 2 ;;
esac
