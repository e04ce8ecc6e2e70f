#!/usr/bin/env bash
# Makes everything that a release consists of, in dist/release or the directory that is
# named:
#
#   hack/release/release.sh VERSION REPOSITORY [DIRECTORY [DOWNLOADS [HOMEPAGE]]]
#
# VERSION is that of Semantic Versioning with a v in front. REPOSITORY is where the image
# is going to be pushed: the manifests and the chart name it there by its digest. DOWNLOADS
# is the URL below which the files are going to be had, and HOMEPAGE that of the
# documentation: Krew's manifest names both. Nothing is pushed here, and the same sources
# give the same files. RELEASE_PLATFORMS, such as linux/amd64, makes fewer images and
# plugins than there are by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=$1 repository=$2 out=${3:-dist/release} downloads=${4:-} homepage=${5:-}
if ! [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
  echo "release: $version is no version such as v1.2.3 or v1.2.3-rc.1" >&2
  exit 2
fi
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The image, twice: a digest that cannot be made again by others would be worth little.
platforms=${RELEASE_PLATFORMS:-linux/amd64,linux/arm64}
build() { bin/janus-image --version="$version" --tag="$version" --platforms="$platforms" "$@"; }
echo "==> building the image"
digest=$(build --output="$out/janusd-$version.oci.tar" --sbom="$out/janusd-$version.cdx.json")
echo "==> building it once more"
again=$(build --output="$work/again.tar")
if [[ $digest != "$again" ]] || ! cmp "$out/janusd-$version.oci.tar" "$work/again.tar"; then
  echo "release: the image is not reproducible: $digest, then $again" >&2
  exit 1
fi
echo "$digest" >"$out/janusd-$version.digest"

echo "==> writing the manifests, which run $repository@$digest"
hack/release/manifests.sh "$repository@$digest" >"$out/install.yaml"

echo "==> packaging the chart"
cp -R deploy/chart/janus "$work/janus"
sed -i -e "s|^  repository: janusd$|  repository: $repository|" -e "s|^  digest: \"\"$|  digest: $digest|" "$work/janus/values.yaml"
# Files of another age would make another archive.
find "$work/janus" -exec touch -d @0 {} +
bin/helm package "$work/janus" --version "${version#v}" --app-version "$version" --destination "$out" >/dev/null
bin/helm template janus "$out/janus-${version#v}.tgz" --namespace janus-system >"$work/chart.yaml"
for file in "$out/install.yaml" "$work/chart.yaml"; do
  if ! grep -qF "image: $repository@$digest" "$file"; then
    echo "release: $file does not run the image" >&2
    exit 1
  fi
done

echo "==> making the bundle for the Operator Lifecycle Manager"
go run -C hack/olm . --version="$version" --output="$work/olm" <"$out/install.yaml"
# Files of another age or owner would make another archive.
tar -C "$work/olm" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -cf "$out/janus-olm-${version#v}.tar" .

# The plugin, twice as well.
pack() {
  bin/janus-archive --version="$version" ${RELEASE_PLATFORMS:+--platforms="$RELEASE_PLATFORMS"} \
    --downloads="$downloads" --homepage="$homepage" --output="$1" --sbom="$1/kubectl-janus-$version.cdx.json"
}
echo "==> building the plugin of kubectl"
pack "$work/plugin"
echo "==> building it once more"
pack "$work/plugin-again"
if ! diff -r "$work/plugin" "$work/plugin-again"; then
  echo "release: the plugin is not reproducible" >&2
  exit 1
fi
echo "==> having Krew check its manifest"
go tool -modfile=hack/tools/go.mod validate-krew-manifest -manifest="$work/plugin/janus.yaml" -skip-install
cp "$work/plugin"/* "$out"

echo "==> writing the checksums"
(cd "$out" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
ls -l "$out"
