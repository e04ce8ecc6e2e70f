// Command verify checks a release as those who get it have to: with its files, its registry and
// the key or the identity that must have signed it, and with nothing that the build says of
// itself.
//
//	janus-verify check --release=DIR --version=v1.2.3 --key=FILE
//	janus-verify check --release=DIR --version=v1.2.3 --identity=URL --issuer=URL \
//	  --image=REGISTRY/janusd --chart=REGISTRY/charts/janus
//
// A release is good if
//
//   - SHA256SUMS has each file and no other, and each file has the sum that it says,
//   - each file has a signature of its own, FILE.sigstore.json,
//   - janus-VERSION.intoto.jsonl is a signed SLSA provenance of all these files,
//   - the image is whole, and install.yaml, the chart and Krew's manifest name what was released,
//   - the bills of materials list the modules that the programs say that they were built of, and
//     are attested for the image and for the archives,
//   - the registry has the image and the chart of these files, and what was attached to them: the
//     signature, and for the image its provenance and its bill of materials as well.
//
// Signatures and attestations are Sigstore bundles, as cosign, GitHub's attestations and their
// verifiers write and read them. With --key they are those of a key; else those of an identity,
// with a certificate, a time stamp and an entry in a transparency log, which are checked against
// --trusted-root or the root that Sigstore publishes.
//
// The other subcommands are for trying that without Sigstore and without a registry of one's
// own: registry serves one on the loopback interface, push copies an image into it, and sign
// does what the signing job of a release does, with a key that it makes and forgets. Then
// check --tamper changes one byte of each file, one after the other, and fails unless the release
// is refused each time.
//
// The command shares no code with what builds the release.
package main
