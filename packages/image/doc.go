// Package image reads Crossplane packages out of the images that hold them: it names an image
// as Crossplane names it, asks its registry, and parses what is in it.
//
// # Invariants
//
// A tag is resolved once, and what is read is read by its digest: never by the tag, which may
// move between two requests. Nothing is taken of a blob that is not what its digest says. No
// more than a bounded number of bytes is read and unpacked, and no more than a bounded time is
// waited. Credentials go over HTTPS alone, but for this machine.
//
// What is accepted is what Crossplane accepts, as far as it can be told without Crossplane:
// one package, of a kind that exists, with objects of the kinds that it may have. It verifies
// no signatures.
package image
