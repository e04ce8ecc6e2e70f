// Package schema compares two definitions of a kind of custom resources, and finds out what a
// new definition does to the custom resources that exist.
//
// A difference is breaking if something that was accepted may be refused, or if something that
// was stored may be dropped. What cannot be told, such as what a new validation rule refuses,
// is taken for breaking: the custom resources that exist then tell more.
//
// # Invariant
//
// A definition to which Compare finds no breaking difference accepts and keeps all that the
// former accepted and kept, but for what a validation rule says that it already had.
//
// It does no I/O.
package schema
