#!/usr/bin/env bash
# Makes a release as `make release` does, in two directories with sources of their own, compares
# them, and has bin/janus-verify check one of them as those have to who get it:
#
#   hack/release/verify.sh VERSION [DIRECTORY]
#
# It needs no network: the registry is one on the loopback interface, and a key that is made
# and forgotten signs what an identity signs in a release. Then a byte of each file is changed,
# one after the other, which has to be noticed. RELEASE_PLATFORMS, such as linux/amd64, makes
# fewer images and plugins than there are by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=$1 out=$PWD/${2:-dist/verify}
rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
registry=
cleanup() {
  if [[ -n $registry ]]; then kill "$registry" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT

echo "==> starting a registry"
bin/janus-verify registry >"$work/address" &
registry=$!
for ((i = 0; i < 100; i++)); do
  if [[ -s $work/address ]]; then break; fi
  sleep 0.1
done
repository=$(<"$work/address")/janus

echo "==> making the release"
make -s release VERSION="$version" DIST="$out" REPOSITORY="$repository/janusd" >"$work/log" || { cat "$work/log" >&2; exit 1; }
echo "==> making it again, of a copy of the sources"
mkdir "$work/copy"
tar -c --exclude=./.git --exclude=./bin --exclude=./dist . | tar -x -C "$work/copy"
ln -s "$PWD/bin" "$work/copy/bin"
hack=$work/copy/hack/release/release.sh
"$hack" "$version" "$repository/janusd" "$work/again" "" "" >"$work/log" || { cat "$work/log" >&2; exit 1; }
diff -r "$out/release" "$work/again" || { echo "verify-release: the release is not reproducible" >&2; exit 1; }

echo "==> pushing and signing it"
bin/janus-verify push --layout="$out/release/janusd-$version.oci.tar" --to="$repository/janusd" --tag="$version"
bin/helm push "$out/release/janus-${version#v}.tgz" "oci://$repository/charts" --plain-http >/dev/null 2>"$work/log" ||
  { cat "$work/log" >&2; exit 1; }
commit=$(git rev-parse HEAD)
bin/janus-verify sign --release="$out/release" --version="$version" --commit="$commit" \
  --image="$repository/janusd" --chart="$repository/charts/janus" --public-key="$out/key.pub"

echo "==> checking it"
bin/janus-verify check --release="$out/release" --version="$version" --key="$out/key.pub" --commit="$commit" \
  --image="$repository/janusd" --chart="$repository/charts/janus" --tamper
echo "==> the release $version can be verified: $out/release"
