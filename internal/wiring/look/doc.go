// Package look reads for people what only those may read who know how Janus keeps it: what
// Transactions have changed, which of them are remembered, and the names of locks.
//
// # Invariant
//
// It reads with the client that it is given, and writes nothing. What it shows of a before-image has
// the digest that the status of the Transaction names, and no value of a Secret, of a sensitive kind,
// or of content that came from a Secret.
package look
