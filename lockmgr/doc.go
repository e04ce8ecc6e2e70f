// Package lockmgr acquires, keeps and releases advisory locks on Kubernetes
// objects, as Leases of the group coordination.k8s.io.
//
// # Invariant
//
// Two holders never hold the lock of one target at the same time unless both share
// it, whether they live in one process or in two, as long as nobody deletes Leases that are not
// theirs and every process measures durations alike. The lock orders work and
// makes conflicts rare; it is not the fence. What is written to a target needs
// preconditions of its own, since a process may be stopped for longer than its
// lock lasts at any point between checking the lock and using it.
//
// # Time
//
// A timestamp in a Lease was written by another machine's clock and is never
// compared with ours. A record has expired when it has stood unchanged, by our
// own clock since this process first saw it, for the duration that the record
// itself states; any write to the Lease restarts the count. A holder counts
// its own time from before it sent the request, everybody else from after they
// read the result, so the holder always stops believing first. The idea is
// that of k8s.io/client-go/tools/leaderelection.
//
// A record need not be waited for whose holder is known to have ended:
// [Holder.Ended] tells. It is asked after the record was read, and the write
// that takes the Lease over is conditioned on that record. So a holder that
// resumes after it was asked about, and renews its Lease, keeps it; one that
// resumes and does not, finds that it has lost the lock.
//
// # Order
//
// [Manager.Acquire] takes locks in the order of [Key.Less], side by side, and
// releases all that come after the first one it was refused. So a holder
// that waits holds only locks that come before the one it waits for, and no
// circle of waiting holders can form.
//
// # Sharing
//
// A lock whose Key is Shared has any number of readers, or one writer, in one
// Lease. shared.go has the rules, and says why readers do not starve a writer.
//
// # Labels
//
// A Lease that names a holder is that holder's only if it has the holder's labels, or was made by
// this process. marks.go says what happens to others.
//
// # Place
//
// The Lease is in the target's namespace. For a target without a namespace it
// is in the namespace of the Manager, and so is, as a stand-in, that of a
// target whose namespace does not exist yet; standin.go says why the two
// places together still exclude.
//
// # Memory
//
// The Manager remembers what it holds, so that a lock known to have more than
// two thirds of its time left costs no request, and what it waits for, so that
// it can tell an expired record. Nothing depends on that memory for safety: a
// new process finds its Leases again by the identity and the labels of the holder. A holder's
// memory ends with Release and Forget.
//
// # Requests
//
// For N locks that are free, in one namespace: N creates and one list. The
// list is not needed in the Manager's own namespace. Keeping fresh locks costs
// nothing and others one update each; a release costs N deletes. Each try
// for a lock that another client holds costs a create and a get at first and
// one get from then on, and what [Holder.Ended] asks.
// A reader that joins others needs a create, a get and an update. A writer that
// waits for readers needs one update more, and another one each third of its TTL.
// Those that write one Lease at the same time need further attempts.
//
// A client that can make one request of what many goroutines ask, as that of internal/leasetable, is asked
// for all locks of a call at the same time. Then the N creates are one write, and so are N updates and N
// deletes.
//
// # What it does not do
//
// It runs no goroutine of its own and renews nothing by itself: the caller
// calls Keep. It does not wait for a lock: the caller does, and calls Acquire
// again. It does not know what a Transaction is.
package lockmgr
