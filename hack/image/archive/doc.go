// Command archive builds what people download who use the kubectl plugin:
//
//	go build -C hack/image -o ../../bin/janus-archive ./archive
//	bin/janus-archive --version=v0.1.0 --output=dist
//
// For each platform it cross-compiles the plugin and packs it, with the files that it
// takes along, into an archive kubectl-janus_VERSION_OS_ARCH.tar.gz, or .zip for Windows.
// Beside them it writes janus.yaml, a manifest by which Krew installs the plugin from these
// archives and from no others: it has their checksums.
//
// Files belong to root, have one time and come in the order of their names, so that the
// same sources make the same archives, on any machine and at any time.
//
// With --sbom it also writes a software bill of materials: the modules of the programs.
//
// The command uses no network, if the modules of the program have been downloaded.
package main
