#!/usr/bin/env bash
# shares.sh N waits until N replicas have divided the eight shards between them, and says how
# many each of those holds that replica.sh has started.
set -euo pipefail
cd "${TMPDIR:-/tmp}/janus-scale-out-$UID"

holders() {
  kubectl get leases -l app.kubernetes.io/component=shard \
    -o jsonpath='{range .items[*]}{.spec.holderIdentity}{"\n"}{end}' | sed '/^$/d'
}

divided() { # all eight are held, by N, and nobody has two more than another
  sort | uniq -c | awk -v n="$1" '
    { all += $1; if (!most || $1 > most) most = $1; if (!least || $1 < least) least = $1 }
    END { exit !(all == 8 && NR == n && most - least < 2) }'
}

until held=$(holders) && divided "$1" <<<"$held"; do sleep 0.5; done
for log in *.log; do
  identity=$(sed -n 's/.*"sharing the work","identity":"\([^"]*\)".*/\1/p' "$log")
  echo "${log%.log}: $(grep -cxF "$identity" <<<"$held") shards" || true
done
