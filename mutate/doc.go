// Package mutate is the table of strategies, one for each type of change. A
// strategy can try its change without effect, make it, observe whether it is in
// effect, and roll it back.
//
// Invariant: every write carries a precondition, the uid and resourceVersion of
// what was seen or that the target must not exist. A write that meets something
// else is refused by the API server; then the strategy looks again, goes on if
// nothing but the status has changed, and otherwise reports a conflict.
//
// A strategy is called again after any outcome. Do is called again only after
// Observe; Undo finds out by itself how far it got.
package mutate
