#!/usr/bin/env bash
# Runs janus-cluster in the background, for people: make cluster-up, cluster-down.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

state=dist/cluster # git does not look at dist
kubeconfig=$state/kubeconfig

# running succeeds if the process of the pid file is a cluster. Its id alone says
# nothing: another process may have it by now.
running() {
  pid=$(cat $state/pid 2>/dev/null) && [[ $(cat "/proc/$pid/comm" 2>/dev/null) == janus-cluster ]]
}

usage() {
  cat <<END

  export KUBECONFIG=$PWD/$kubeconfig
  bin/kubectl get nodes
  bin/kubectl create namespace janus-system
  bin/kubectl apply -k deploy/crd
  bin/janusd --log-format=console

Pods become Ready, but nothing runs in them. The components log to
$state/logs. Stop it all with: make cluster-down
END
}

up() {
  if running; then
    echo "the cluster is up already (pid $pid)"
    usage
    return
  fi
  echo "starting a cluster with two Nodes"
  mkdir -p $state
  rm -f $kubeconfig
  setsid bin/janus-cluster run --nodes 2 --kwok-binary bin/janus-kwok \
    --kubeconfig $kubeconfig --quiet-logs $state/logs >$state/output 2>&1 </dev/null &
  pid=$!
  echo $pid >$state/pid
  until [[ -s $kubeconfig ]]; do
    if ! kill -0 $pid 2>/dev/null; then
      echo "the cluster did not start:" >&2
      cat $state/output >&2
      rm -f $state/pid
      exit 1
    fi
    sleep 0.1
  done
  echo "the cluster is up (pid $pid)"
  usage
}

down() {
  if ! running; then
    echo "no cluster is up"
    rm -f $state/pid
    return
  fi
  echo "stopping the cluster (pid $pid)"
  kill "$pid"
  for ((i = 0; i < 300; i++)); do
    if ! running; then
      rm -f $state/pid
      return
    fi
    sleep 0.1
  done
  echo "it did not stop within 30 s; see $state/output" >&2
  exit 1
}

case ${1:-} in
  up) up ;;
  down) down ;;
  *)
    echo "usage: $0 up|down" >&2
    exit 2
    ;;
esac
