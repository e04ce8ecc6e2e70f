// Package expression evaluates the CEL expressions of a Transaction: in the dialect of
// the API server, within its cost limit, over objects as they are, or over the kinds that a
// cluster serves.
//
// It reads nothing. Anyone who evaluates an expression gives it the objects that it names,
// and is told which those are before.
package expression
