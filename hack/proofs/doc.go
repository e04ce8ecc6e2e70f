// Command proofs runs what proves the guarantees of Janus on one version of its protocol, in slices,
// and writes what has passed to docs/proofs.md. It takes about 13 hours on 2 cores, and resumes where it
// was interrupted:
//
//	make proofs                     # all that is left
//	make proofs PROOFS='-minutes=60 enumeration seeds'
//
// The version is a digest of the code of the controller, the engine and all that they need. When
// it has changed, nothing that is recorded counts any more, and -reset begins the record again.
package main
