// Package notify tells when something happens to what Transactions wait for, so that it need not be
// looked at again and again.
//
// An object is watched as the ServiceAccount of the Transaction, and by its name: who may watch one
// object need not be allowed to watch others. Only metadata is watched, so that no content is
// kept here. A lock is not watched: its holder is a Transaction, and those are watched anyhow.
//
// An event says only that it is time to look. The Transaction then looks for itself, so an event that
// is late or doubled costs a look, and one that is lost a wait.
//
// Invariant: while Watches reports that a Transaction is told, it is woken after every change of
// what it waits for that was made since its last look, and when that cannot be told any more.
package notify
