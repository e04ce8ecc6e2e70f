#!/usr/bin/env bash
# Shows what Janus does, on a cluster of its own: a Transaction that commits, one
# that is rolled back, and one in the middle of which janusd is killed. Every
# command is printed before it runs. Run it by `make demo`, which builds what it
# needs. It exits with 0 only if everything was seen to be as it says.
#
# It needs bash, awk, diff and the programs in bin/, and leaves nothing behind.
#
# Commands are given to show in single quotes, to be printed as they are and
# expanded when they run:
# shellcheck disable=SC2016
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=hack/demo
# shellcheck source=hack/demo/screen.sh
source $here/screen.sh
# shellcheck source=hack/demo/processes.sh
source $here/processes.sh

DEMO=$(mktemp -d)
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Neither the configuration nor the cache of the user's own kubectl is touched.
export KUBECONFIG=$DEMO/kubeconfig KUBECACHEDIR=$DEMO/cache KUBERC=off
export PATH=$PWD/bin:$PATH

# get OBJECT JSONPATH prints a part of an object.
get() { kubectl get "$1" -o jsonpath="$2"; }

# await_end NAME waits for any of the final phases.
await_end() {
  show "kubectl wait transaction/$1 --for=jsonpath='{.status.completionTime}' --timeout=60s"
}

no_locks() { is '' kubectl get leases -o name; }
gone() { is '' kubectl get "$1" --ignore-not-found -o name; }

# ---------------------------------------------------------------------------

install() {
  title "A cluster with Janus"
  say "A real etcd, API server, controller manager and scheduler, and two simulated" \
    "Nodes: Pods become Ready, but nothing runs in them. Files are in \$DEMO."
  start_cluster
  show 'kubectl get nodes'

  install_janus
  check "janusd itself may not even read a Deployment" \
    is no as_janusd auth can-i get deployments.apps --all-namespaces
}

# as_janusd runs kubectl with the rights of janusd. The answer "no" of auth can-i
# comes with an exit status, and is none the worse for it.
as_janusd() { kubectl --kubeconfig="$DEMO/janusd.kubeconfig" "$@" || true; }

# ---------------------------------------------------------------------------

shop='kubectl get configmap/app-config deployment/web-server secret/old-api-key --ignore-not-found -o custom-columns="KIND:.kind,NAME:.metadata.name,VERSION:.data.version,IMAGE:.spec.template.spec.containers[0].image"'

commit() {
  title "1. A Transaction commits"
  say "A shop at version 1.0, and a ServiceAccount that may do just what the" \
    "Transaction needs."
  show 'kubectl create namespace shop && kubectl config set-context --current --namespace=shop'
  show 'kubectl apply -f examples/deploy-v2/before.yaml -f examples/deploy-v2/rbac.yaml'
  show 'kubectl rollout status deployment/web-server --timeout=60s'
  show "$shop"

  say "Patch the ConfigMap and the Deployment and delete the Secret, all or nothing."
  show "sed '/^ *#/d' examples/deploy-v2/transaction.yaml"
  {
    show 'kubectl get transactions --watch &'
    watches+=($!)
  } 9>&-
  sleep 0.5
  show 'kubectl create -f examples/deploy-v2/transaction.yaml'
  await_end deploy-v2
  sleep 0.5
  stop_watches

  show "kubectl get txn deploy-v2 -o go-template-file=$here/items.tmpl"
  show 'kubectl events --for=transaction/deploy-v2'
  show "$shop"
  show 'kubectl rollout status deployment/web-server --timeout=60s'

  check "deploy-v2 is Committed" is Committed get txn/deploy-v2 '{.status.phase}'
  check "all its items are Committed" is 'Committed Committed Committed' get txn/deploy-v2 '{.status.items[*].state}'
  check "the ConfigMap has version 2.0, and the greeting that nobody changed" \
    is '2.0 welcome' get configmap/app-config '{.data.version} {.data.greeting}'
  check "the Deployment has image myapp:v2.0, and both Pods run it" \
    is 'myapp:v2.0 2' get deployment/web-server '{.spec.template.spec.containers[0].image} {.status.updatedReplicas}'
  check "the Secret old-api-key is gone" gone secret/old-api-key
  check "no lock of deploy-v2 is left" no_locks
  check "it is remembered under a number, so that it can be undone" is 1 get txn/deploy-v2 '{.status.revision}'
  check "its before-images are kept for that, and nothing holds them" \
    is 'deploy-v2-rollback []' get configmap/deploy-v2-rollback '{.metadata.name} [{.metadata.finalizers}]'
}

# ---------------------------------------------------------------------------

# state prints everything that the second Transaction changes, owners of fields
# included, less what comparable.awk takes out.
state() {
  kubectl get configmap/checkout-config -o yaml --show-managed-fields | awk -f $here/comparable.awk
  kubectl get deployment/checkout -o yaml --show-managed-fields | awk -f $here/comparable.awk
  kubectl get secret/checkout-key -o yaml --show-managed-fields | awk -v recreated=1 -f $here/comparable.awk
  kubectl get services -o name
}

roll_back() {
  title "2. A Transaction is rolled back"
  say "The checkout is to get two Services, and a quota has room for one. A dry run" \
    "uses no quota up, so only making the second Service shows that it cannot be."
  show 'kubectl apply -f examples/rollback/before.yaml -f examples/rollback/rbac.yaml'
  show 'kubectl rollout status deployment/checkout --timeout=60s'
  await "the quota to be counted" kubectl get resourcequota services -o 'jsonpath={.status.used}' --allow-missing-template-keys=false
  say "Keep the objects as they are now, with the owners of all fields. Left out are" \
    "resourceVersion, generation, status, and uid and age of the Secret, which will" \
    "be made again."
  show 'state >"$DEMO/before.yaml"; wc -l <"$DEMO/before.yaml"'
  watch_into "$DEMO/versions" configmap/checkout-config -o 'jsonpath={.data.version}{"\n"}'
  watch_into "$DEMO/services" services --output-watch-events -o 'jsonpath={.type} {.object.metadata.name}{"\n"}'
  sleep 0.5

  show 'kubectl create -f examples/rollback/transaction.yaml'
  await_end checkout-v2
  show "kubectl get txn checkout-v2 -o go-template-file=$here/items.tmpl"
  show "kubectl get txn checkout-v2 -o jsonpath='{.status.items[4].message}{\"\\n\"}'"
  show 'kubectl get txn checkout-v2'
  show 'state >"$DEMO/after.yaml"; diff "$DEMO/before.yaml" "$DEMO/after.yaml" && echo "no difference"' || true

  check "checkout-v2 is RolledBack" is RolledBack get txn/checkout-v2 '{.status.phase}'
  check "its last item is the reason" is admin get txn/checkout-v2 '{.status.failedItem}'
  check "the four others had been made, and were rolled back" \
    is 'RolledBack RolledBack RolledBack RolledBack Rejected' get txn/checkout-v2 '{.status.items[*].state}'
  await "the watches to catch up" grep -q DELETED "$DEMO/services"
  stop_watches
  check "the ConfigMap was seen to go from 1.0 to 2.0 and back" is '1.0 2.0 1.0 ' changes "$DEMO/versions"
  check "the Service was seen to come and go" \
    is 'ADDED checkout-api DELETED checkout-api ' steps "$DEMO/services"
  check "every object is as it was, with the same owner of every field" \
    diff "$DEMO/before.yaml" "$DEMO/after.yaml"
  check "no lock of checkout-v2 is left" no_locks
  check "the before-images are kept, to be looked into" \
    is configmap/checkout-v2-rollback kubectl get configmap/checkout-v2-rollback -o name
}

# changes prints the lines of a file in one line, and repeated ones once.
changes() { uniq "$1" | tr '\n' ' '; }

# steps prints what came and went, without what was only modified.
steps() { grep -v MODIFIED "$1" | tr '\n' ' '; }

# ---------------------------------------------------------------------------

pages=300

# write_pages writes the manifests of a Transaction with many changes.
write_pages() {
  local i
  for i in $(seq -w $pages); do
    printf -- '---\napiVersion: v1\nkind: ConfigMap\n'
    printf 'metadata: {name: page-%s, labels: {app: pages}}\n' "$i"
    printf 'data: {version: "1.0", text: "This is page %s."}\n' "$i"
  done >"$DEMO/pages.yaml"
  {
    printf 'apiVersion: backup.janus.io/v1alpha1\nkind: Transaction\nmetadata: {name: pages-v2}\n'
    printf 'spec:\n  serviceAccountName: pages-sa\n  changes:\n'
    for i in $(seq -w $pages); do
      printf '  - {name: page-%s, type: Patch, ' "$i"
      printf 'target: {apiVersion: v1, kind: ConfigMap, name: page-%s}, ' "$i"
      printf 'content: {data: {version: "2.0"}}}\n'
    done
  } >"$DEMO/transaction.yaml"
}

# kill_midway reads which pages change, and kills janusd in the middle third.
kill_midway() {
  local made=0 version
  while read -r -t 60 _ version <&8; do
    [[ $version == 2.0 ]] || continue
    if ((++made >= pages * 2 / 5)); then
      show 'kill -9 "$janusd"'
      reap "$janusd"
      return
    fi
  done
  echo "the Transaction made no progress" >&2
  return 1
}

# between LOW HIGH succeeds if the number of pages that are changed is in between.
between() {
  local made
  made=$(kubectl get configmaps -l app=pages -o jsonpath='{range .items[*]}{.data.version}{"\n"}{end}' | grep -c '^2\.0$')
  echo "$made pages are changed"
  (($1 <= made && made <= $2))
}

# once checks, by what a watch has seen, that each page went from 1.0 to 2.0 and
# did nothing else.
once() {
  diff <(for i in $(seq -w $pages); do echo "page-$i 1.0 2.0"; done) \
    <(awk '$2 != last[$1] { seen[$1] = seen[$1] " " $2; last[$1] = $2 }
      END { for (page in seen) print page seen[page] | "sort" }' "$1")
}

# granted_once checks, by the audit log, that no page was changed by two granted requests as the
# ServiceAccount and by the field manager of an item. Each page has one but perhaps that which was
# under way when janusd was killed: nobody was there for the answer, and the API server does not
# always log that it was granted.
granted_once() {
  local granted
  granted=$(grep -E '"requestURI":"[^"]*/configmaps/page-[0-9]+\?[^"]*fieldManager=janus-' "$DEMO/audit.log" |
    grep -E '"verb":"(patch|update)"' | grep '"code":200' | grep -v dryRun |
    grep system:serviceaccount:shop:pages-sa |
    sed -E 's/.*"requestURI":"[^"]*(page-[0-9]+)\?.*/\1/' | sort)
  echo "$(wc -l <<<"$granted") granted, more than one for: $(uniq -d <<<"$granted" | xargs)"
  [[ -z $(uniq -d <<<"$granted") ]] && (($(wc -l <<<"$granted") >= pages - 1))
}

crash() {
  title "3. janusd is killed in the middle"
  say "$pages ConfigMaps, and a Transaction that patches all of them."
  write_pages
  show 'kubectl apply -f "$DEMO/pages.yaml" | wc -l'
  show 'kubectl create serviceaccount pages-sa'
  show 'kubectl create role pages-sa --verb=get,patch --resource=configmaps'
  show 'kubectl create rolebinding pages-sa --role=pages-sa --serviceaccount=shop:pages-sa'
  show 'head -n 8 "$DEMO/transaction.yaml"'
  watch_into "$DEMO/pages" configmaps -l app=pages -o 'jsonpath={.metadata.name} {.data.version}{"\n"}'
  mkfifo "$DEMO/changes"
  watch_into "$DEMO/changes" configmaps -l app=pages -o 'jsonpath={.metadata.name} {.data.version}{"\n"}'
  exec 8<"$DEMO/changes"
  sleep 0.5

  show 'kubectl create -f "$DEMO/transaction.yaml"'
  say "Wait until two fifths are changed, and kill janusd without a warning. What it has done" \
    "last is not on record, but that it was about to do it is."
  kill_midway
  exec 8<&-
  show 'kubectl get txn pages-v2'
  check "janusd is dead" dead "$janusd"
  check "between a third and two thirds of the pages are changed" between $((pages / 3)) $((pages * 2 / 3))
  check "it is still Committing" is Committing get txn/pages-v2 '{.status.phase}'

  say "Start janusd again. It finds out which changes were made before its death, and goes" \
    "on from there."
  start_janusd
  await_end pages-v2
  show 'kubectl get txn pages-v2'
  show "kubectl get configmaps -l app=pages -o jsonpath='{range .items[*]}{.data.version}{\"\\n\"}{end}' | sort | uniq -c"

  check "pages-v2 is Committed, with $pages of $pages changes" is "Committed $pages/$pages" get txn/pages-v2 '{.status.phase} {.status.progress}'
  sleep 0.5
  stop_watches
  check "each page was seen to change from 1.0 to 2.0, once" once "$DEMO/pages"
  check "the audit log has no second granted request to change any page" granted_once
  check "no field manager of pages-v2 is left on a page" no_item_managers
  check "no lock of pages-v2 is left" no_locks
}

no_item_managers() { ! kubectl get configmaps -o yaml --show-managed-fields | grep -q 'manager: janus-'; }

dead() { ! alive "$1"; }

# ---------------------------------------------------------------------------

install
commit
roll_back
crash
show 'kubectl get transactions'
summary
