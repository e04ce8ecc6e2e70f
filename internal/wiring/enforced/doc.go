// Package enforced keeps the tables from which the API server knows what Transactions have
// locked, so that it can refuse other writes: see deploy/enforced. It is put around
// engine.Locks by those who want that, and nothing else of Janus knows of it.
//
// Its invariant: the entry of a Transaction is made while it holds all its Leases and before
// its first change, and removed after its last write and before its Leases are released.
// So an entry says nothing that a Lease does not say too, and anyone who holds the Lease of a
// target may write over whatever entry of it is there. An entry names its Transaction by
// uid, and nobody removes one of another that has not ended.
//
// What a crash, or a request that lands late, leaves behind is removed by the Transaction's
// own end if that is yet to come, and else by Sweep, which every janusd calls at its start
// and once a minute.
//
// Nothing that Janus guarantees rests on the tables: they are to keep others from running
// into a Transaction. The API server learns of an entry by a watch, a moment after it was
// made; the preconditions of every write of Janus hold in that moment, too.
package enforced
