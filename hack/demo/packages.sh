#!/usr/bin/env bash
# Shows how Janus changes Crossplane packages, on a cluster of its own: a provider and what it
# needs are installed, an upgrade fails and is rolled back, another provider takes over, and
# that is undone. Every command is printed before it runs. Run it by `make demo-packages`, which
# builds what it needs. It exits with 0 only if everything was seen to be as it says.
#
# Commands are given to show in single quotes, to be printed as they are and
# expanded when they run:
# shellcheck disable=SC2016
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=hack/demo/screen.sh
source hack/demo/screen.sh
# shellcheck source=hack/demo/processes.sh
source hack/demo/processes.sh
# shellcheck source=hack/demo/crossplane.sh
source hack/demo/crossplane.sh

DEMO=$(mktemp -d)
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Neither the configuration nor the cache of the user's own kubectl is touched.
export KUBECONFIG=$DEMO/kubeconfig KUBECACHEDIR=$DEMO/cache KUBERC=off
export PATH=$PWD/bin:$PATH

# get OBJECT JSONPATH prints a part of an object.
get() { kubectl get "$1" -o jsonpath="$2"; }
phase() { get txn/"$1" '{.status.phase}'; }
healthy() { is True get "$1" '{.status.conditions[?(@.type=="Healthy")].status}'; }

# controller prints the provider that has the definition of buckets.
controller() {
  get managedresourcedefinition/buckets.acme.io '{.metadata.ownerReferences[?(@.controller==true)].name}' | sed 's/-[0-9a-f]*$//'
}

# What identifies the custom resource, and what it says.
bucket='{.metadata.uid} {.spec}'

plan='--service-account installer --crossplane-version v2.1.3'

# ---------------------------------------------------------------------------

install() {
  title "A cluster with Crossplane and Janus"
  say "A real etcd, API server, controller manager and scheduler, and two simulated" \
    "Nodes: Pods become Ready, but nothing runs in them. Files are in \$DEMO."
  start_cluster
  say "Crossplane, unmodified, and a registry with packages, both on this machine." \
    "An ImageConfig has images of xpkg.acme.io come from that registry."
  start_registry
  start_crossplane
  rewrite_names
  install_janus
  say "A ServiceAccount that may change packages."
  show 'kubectl create namespace shop && kubectl config set-context --current --namespace=shop'
  show 'kubectl apply -f examples/packages/rbac.yaml'
}

install_provider() {
  title "1. A provider is installed with what it needs"
  say "The plan fetches the images, solves the versions, and looks for conflicts." \
    "Nothing is written. It ends with exit code 1, because something would change."
  show "kubectl janus package plan install xpkg.acme.io/acme/bucket:v1.0.0 $plan || [ \$? = 1 ]"
  say "One Transaction makes all of it."
  show "kubectl janus package install xpkg.acme.io/acme/bucket:v1.0.0 $plan --yes --wait --timeout 1m"
  show 'kubectl janus package tree'
  show 'kubectl get providers'
  check "the provider is healthy" healthy provider/acme-bucket
  check "and so is the one that it needs" healthy provider/acme-family

  say "A user makes a custom resource of the provider."
  show 'kubectl wait --for=condition=Established crd/buckets.acme.io'
  show 'kubectl apply -f examples/packages/bucket.yaml'
  before=$(get bucket/large "$bucket")
}

upgrade() {
  title "2. An upgrade that fails is rolled back"
  say "An upgrade is planned; with -o yaml the plan prints its Transaction. Before it is" \
    "made, someone pushes another image under the same tag: one in which buckets of this" \
    "size are not valid any more."
  show "kubectl janus package plan install xpkg.acme.io/acme/bucket:v1.1.0 $plan || [ \$? = 1 ]"
  show "kubectl janus package plan install xpkg.acme.io/acme/bucket:v1.1.0 $plan -o yaml >\"\$DEMO/upgrade.yaml\""
  show 'bin/demo-registry push $registry acme/bucket:v1.1.0 hack/demo/packages/bucket-moved.yaml'
  show 'upgrade=$(kubectl create -f "$DEMO/upgrade.yaml" -o name | cut -d/ -f2)'
  show 'kubectl janus wait $upgrade --timeout 1m' || true
  show 'kubectl get txn $upgrade'
  show 'kubectl get providers'
  check "the upgrade is RolledBack" is RolledBack phase "$upgrade"
  check "the provider has its old version" is xpkg.acme.io/acme/bucket:v1.0.0 get provider/acme-bucket '{.spec.package}'
  check "and is healthy" healthy provider/acme-bucket
  check "the custom resource is the same, and as it was" is "$before" get bucket/large "$bucket"

  say "A plan of what the tag is now says why it cannot be. It ends with exit code 2."
  show "kubectl janus package plan install xpkg.acme.io/acme/bucket:v1.1.0 $plan || [ \$? = 2 ]"
}

replace() {
  title "3. Another provider takes over"
  say "The provider of another publisher has the same kinds. It takes over, and the" \
    "custom resource stays as it is."
  show "kubectl janus package plan replace acme-bucket xpkg.acme.io/acme/store:v1.0.0 $plan || [ \$? = 1 ]"
  show "replace=\$(kubectl janus package plan replace acme-bucket xpkg.acme.io/acme/store:v1.0.0 $plan -o yaml | kubectl create -f - -o name | cut -d/ -f2)"
  show 'kubectl janus wait $replace --timeout 1m'
  show 'kubectl get providerrevisions'
  check "the new provider is healthy" healthy provider/acme-store
  check "it controls the definition" is acme-store controller
  check "the custom resource is the same, and as it was" is "$before" get bucket/large "$bucket"
}

undo() {
  title "4. That is undone"
  show 'kubectl janus undo $replace --wait --timeout 1m'
  show 'kubectl get providers'
  check "the new provider is gone" is '' kubectl get provider/acme-store --ignore-not-found -o name
  check "the old provider is healthy" healthy provider/acme-bucket
  check "it controls the definition again" is acme-bucket controller
  check "the custom resource is the same, and as it was" is "$before" get bucket/large "$bucket"
}

install
install_provider
upgrade
replace
undo
summary
