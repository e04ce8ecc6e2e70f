// Package leftovers finds out of which Transactions that ended a moment ago something may be left:
// a Lease, or an object with before-images, that a process was late with which has died.
//
// The engine finds that out too, of one Transaction at a time, with a few requests for each of its
// targets. A janusd that starts among thousands has them looked at here first, all together: all
// Leases of locks are listed once, and for each Transaction the few objects are looked for that it
// may have. Whatever is found, or can't be told, is left to the engine; here nothing is removed of a
// Transaction that exists.
package leftovers
