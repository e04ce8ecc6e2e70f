# shellcheck shell=bash disable=SC2016
# The processes of the demonstrations. Each is stopped by its own id, however the
# demonstration ends.

cluster='' janusd='' watches=() others=()

# start_cluster starts the control plane and waits until it is ready. It stops
# also when this script is killed, because its standard input ends then.
start_cluster() {
  mkfifo "$DEMO/alive"
  bin/janus-cluster run --nodes 2 --kwok-binary bin/janus-kwok --kubeconfig "$KUBECONFIG" \
    --audit-log "$DEMO/audit.log" --quiet-logs "$DEMO/logs" --stop-on-stdin-eof \
    <"$DEMO/alive" >"$DEMO/cluster.log" 2>&1 &
  cluster=$!
  exec 9>"$DEMO/alive" # No other process may inherit it.
  until [[ -s $KUBECONFIG ]]; do
    alive "$cluster" || {
      echo "the cluster did not start:"
      cat "$DEMO/cluster.log"
      exit 1
    } >&2
    sleep 0.1
  done
}

# start_janusd starts janusd as the ServiceAccount that deploy/ gives it.
start_janusd() {
  {
    show 'bin/janusd --kubeconfig="$DEMO/janusd.kubeconfig" --metrics-bind-address=0 --health-probe-bind-address=0 2>>"$DEMO/janusd.log" & janusd=$!'
  } 9>&-
}

# install_janus installs Janus in the cluster, and starts janusd.
install_janus() {
  say "Install Janus: the CRD, RBAC, admission policies and a Deployment."
  show 'kubectl apply -k deploy/'
  show 'kubectl wait --for=condition=Established crd/transactions.backup.janus.io'
  show 'kubectl rollout status deployment/janusd -n janus-system --timeout=60s'

  say "There is no container runtime here: these Pods are simulated, and no janusd" \
    "runs in them. So scale the Deployment to 0, and run janusd as a local process" \
    "instead. It gets the token of the ServiceAccount that deploy/ made, and nothing" \
    "else: what it does below, it does with the rights that are shipped."
  show 'kubectl scale deployment/janusd -n janus-system --replicas=0'
  show 'kubectl config view --raw >"$DEMO/janusd.kubeconfig"'
  show 'token=$(kubectl create token janusd -n janus-system)'
  show 'kubectl config --kubeconfig="$DEMO/janusd.kubeconfig" set-credentials janusd --token="$token"'
  show 'kubectl config --kubeconfig="$DEMO/janusd.kubeconfig" set-context --current --user=janusd'
  show 'kubectl config --kubeconfig="$DEMO/janusd.kubeconfig" delete-user kubernetes-admin >/dev/null'
  show 'kubectl --kubeconfig="$DEMO/janusd.kubeconfig" auth whoami'
  start_janusd
}

# watch_into FILE ARGUMENT... writes what kubectl sees to a file, from now on.
watch_into() {
  local file=$1
  shift
  kubectl get --watch "$@" >"$file" 2>/dev/null 9>&- &
  watches+=($!)
}

stop_watches() {
  local pid
  for pid in "${watches[@]}"; do stop TERM "$pid"; done
  watches=()
}

alive() { kill -0 "$1" 2>/dev/null; }

# await TEXT COMMAND... waits until a command succeeds, for half a minute at most.
await() {
  local text=$1 i
  shift
  for ((i = 0; i < 300; i++)); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.1
  done
  echo "waited 30 s in vain for $text" >&2
  return 1
}

# stop SIGNAL PID ends a process and waits for its end.
stop() {
  [[ -n $2 ]] || return 0
  kill "-$1" "$2" 2>/dev/null || true
  reap "$2"
}

# reap waits for the end of a process, whatever its exit status.
reap() { wait "$1" 2>/dev/null || true; }

# clean_up stops everything, and removes the temporary directory.
clean_up() {
  local status=$?
  trap '' INT TERM
  stop_watches
  local pid
  for pid in "${others[@]}"; do stop TERM "$pid"; done
  stop TERM "$janusd"
  stop TERM "$cluster"
  case $status in
    0) ;;
    130 | 143) printf '\nStopped.\n' ;;
    *)
      printf '\nThe demonstration failed. The end of the log of janusd:\n'
      tail -n 20 "$DEMO/janusd.log" 2>/dev/null || true
      ;;
  esac
  rm -rf "$DEMO"
  exit "$status"
}
