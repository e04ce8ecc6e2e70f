# shellcheck shell=bash disable=SC2016
# Crossplane, unmodified, as a process beside the cluster of a demonstration, and a
# registry with the packages of hack/demo/packages.

# start_registry serves the packages, and leads the names of their images to itself.
start_registry() {
  mkfifo "$DEMO/registry.alive"
  bin/demo-registry serve hack/demo/packages <"$DEMO/registry.alive" >"$DEMO/registry" 2>"$DEMO/registry.log" &
  others+=($!)
  exec 7>"$DEMO/registry.alive"
  await "the registry" test -s "$DEMO/registry"
  registry=$(<"$DEMO/registry")
}

# rewrite_names has Crossplane, and the plans, read images of xpkg.acme.io from the registry.
rewrite_names() {
  kubectl apply -f - <<EOF
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata: {name: acme}
spec:
  matchImages: [{prefix: xpkg.acme.io/}]
  rewriteImage: {prefix: $registry/}
EOF
}

# start_crossplane sets Crossplane up, and starts it. Where its chart would run Pods, these are
# processes. The first run of init may find that what it has made is not served yet.
start_crossplane() {
  local sources
  sources=$(cd hack/crossplane && GOFLAGS='' GOWORK=off go list -m -f '{{.Dir}}' github.com/crossplane/crossplane/v2)
  export CRDS_PATH=$sources/cluster/crds
  export TLS_CA_SECRET_NAME=crossplane-root-ca TLS_CLIENT_SECRET_NAME=crossplane-tls-client TLS_SERVER_SECRET_NAME=crossplane-tls-server
  show 'kubectl create namespace crossplane-system && kubectl create serviceaccount crossplane -n crossplane-system'
  await "Crossplane to be set up" bin/crossplane core init --enable-webhooks=false
  mkdir -p "$DEMO/tls" "$DEMO/xpkg"
  local file
  for file in ca.crt tls.crt tls.key; do
    kubectl get secret "$TLS_CLIENT_SECRET_NAME" -n crossplane-system -o "jsonpath={.data.${file/./\\.}}" | base64 -d >"$DEMO/tls/$file"
  done
  bin/crossplane core start --enable-webhooks=false --xpkg-cache-dir="$DEMO/xpkg" --tls-client-certs-dir="$DEMO/tls" \
    --metrics-port=0 --health-probe-port=0 >"$DEMO/crossplane.log" 2>&1 9>&- 7>&- &
  others+=($!)
}
