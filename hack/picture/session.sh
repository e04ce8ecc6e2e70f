#!/usr/bin/env bash
# Runs a session with kubectl janus on a cluster of its own, and draws it as docs/session.svg.
# Run it by `make picture`, which builds what it needs. It leaves nothing else behind.
#
# Commands are given to show in single quotes, and expanded when they run:
# shellcheck disable=SC2016
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=hack/demo/screen.sh
source hack/demo/screen.sh
# shellcheck source=hack/demo/processes.sh
source hack/demo/processes.sh

DEMO=$(mktemp -d)
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

export KUBECONFIG=$DEMO/kubeconfig KUBECACHEDIR=$DEMO/cache KUBERC=off
export PATH=$PWD/bin:$PATH

prepare() {
  start_cluster
  kubectl apply -k deploy/crd
  kubectl wait --for=condition=Established crd/transactions.backup.janus.io
  kubectl create namespace shop
  kubectl config set-context --current --namespace=shop
  kubectl apply -f examples/kubectl-janus/before.yaml -f examples/kubectl-janus/rbac.yaml
  bin/janusd --metrics-bind-address=0 --health-probe-bind-address=0 2>"$DEMO/janusd.log" 9>&- &
  janusd=$!
  cp examples/kubectl-janus/app.yaml examples/kubectl-janus/never.yaml "$DEMO"
}

# step COMMAND shows a command and all that it prints. That it fails is a part of the session.
step() {
  printf '$ %s\n' "$1"
  eval "$1" 2>&1 || true
  echo
}

session() {
  cd "$DEMO"
  step 'kubectl janus plan -f app.yaml --delete secret/payment-key --service-account shop-deployer'
  step 'kubectl janus run -f app.yaml --delete secret/payment-key --service-account shop-deployer --wait 2>/dev/null'
  step 'kubectl janus run -f never.yaml --wait 2>/dev/null; kubectl janus get'
  step 'kubectl get configmap shop-config --output=jsonpath={.data.version}'
}

echo "==> starting a cluster and janusd"
prepare >"$DEMO/prepare.log" 2>&1 || {
  cat "$DEMO/prepare.log"
  exit 1
}
echo "==> recording a session"
(session) >"$DEMO/session.txt"
go run ./hack/picture <"$DEMO/session.txt" >docs/session.svg.new
mv docs/session.svg.new docs/session.svg
cat "$DEMO/session.txt"
