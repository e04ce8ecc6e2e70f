// Package snapshot keeps before-images: each target as it was before it was
// changed, whole, in objects beside the Transaction, and makes of one the object to
// create again. How a live object gets back to it is in fieldmerge.
//
// # Storing
//
// A Record is one item's before-image. Encode returns its bytes, and the digest of
// these goes into the status of the Transaction, so that a Record is believed
// only when it is, to the bit, what Janus saved:
//
//	encoded, err := store.Encode(record)
//	…
//	saved, err := store.Save(ctx, owner, nil, []Encoded{encoded, …}) // then the checkpoint
//	…
//	reader := store.Open(owner, ref)
//	record, err := reader.Load(ctx, item.Before)
//
// Records go into a ConfigMap "{transaction}-rollback", those of sensitive kinds
// into a Secret of that name, and what does not fit goes on into "…-rollback-2"
// and so forth, where a record larger than an object is continued: the size of a
// target limits nothing. Those of a large Transaction are saved by several calls, each
// with what the ones before it have returned.
//
// # Invariants
//
// An object is written once and is immutable. Nothing that another Transaction or
// a person owns is ever written or deleted, and what this Transaction saved is
// deleted by Drop and the sweeps alone, never by Save: of two controllers that
// save the same Transaction, one loses its status write, and it must not have
// taken away what the status of the other names.
//
// The content of a record is in no error. A record that goes into a Secret has a nonce, so
// that its digest does not tell the content to who guesses it.
//
// # What it does not do
//
// It reads and writes no target, and it keeps no status: that a Save counts only
// once a checkpoint names what it returned is the caller's obligation.
package snapshot
