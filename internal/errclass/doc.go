// Package errclass gives every error of Janus a class, because what may be done
// next depends on nothing else: a terminal error ends the attempt, a conflict is
// another client's work to be reported and kept, a retryable error is tried
// again, and after an unknown outcome the target has to be looked at before
// anything is decided.
//
// Classify is the one place where an answer of the API server becomes a class.
// Everybody else asks ClassOf and ReasonOf, and inspects with errors.Is and
// errors.As. The text of an error never carries the content of a sensitive
// object: Wrap keeps from the server's answer only the names of fields.
package errclass
