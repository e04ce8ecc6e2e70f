#!/usr/bin/env bash
# Prints all manifests of the cluster-wide installation, with the image that is named:
#
#   hack/release/manifests.sh REGISTRY/janusd@sha256:DIGEST
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

image=$1
mkdir -p dist
overlay=$(mktemp -d dist/.manifests-XXXXXX)
trap 'rm -rf "$overlay"' EXIT
kustomize=$(go tool -n -modfile=hack/tools/go.mod kustomize)
printf '%s\n' 'apiVersion: kustomize.config.k8s.io/v1beta1' 'kind: Kustomization' \
  'resources: [../../deploy]' >"$overlay/kustomization.yaml"
(cd "$overlay" && "$kustomize" edit set image "janusd=$image")
printf '%s\n' '# Installs Janus for all namespaces: kubectl apply -f install.yaml'
"$kustomize" build "$overlay"
