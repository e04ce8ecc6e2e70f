// Command image builds the container image of janusd without a daemon, a
// registry or a base image:
//
//	go build -C hack/image -o ../../bin/janus-image .
//	bin/janus-image --version=v0.1.0 --output=dist/janusd --tag=v0.1.0
//
// It cross-compiles the program for each platform and writes an OCI image
// layout with one index of all of them, as a directory or, if the output ends in
// .tar, as an archive. The digest of the index is printed on standard output. It
// depends on the sources, the Go toolchain and the flags, and on nothing else:
// the same input has the same digest, on any machine and at any time.
//
// The image holds one file, the program, and runs it as user 65532. There is no
// shell, no package manager and no CA bundle: the CA of the API server is
// mounted into every Pod.
//
// With --sbom it also writes a software bill of materials: the modules of the programs.
//
// Any tool that reads an OCI layout can push the result, for example:
//
//	crane push dist/janusd REGISTRY/janusd:v0.1.0
//	skopeo copy --all oci:dist/janusd:v0.1.0 docker://REGISTRY/janusd:v0.1.0
//
// The command uses no network, if the modules of the program have been
// downloaded.
package main
