// Package leasetable keeps the Leases of a namespace as entries of one Lease, the table. Client stands
// in for client-go's client of Leases: a caller that creates, reads, writes and deletes Leases through it
// finds that each has a uid, a resourceVersion and preconditions as if it were an object of its own.
// What many goroutines ask at the same time is one request.
//
// # Invariant
//
// The API server has one order of all versions of a table, since each write of it is conditioned on the
// version that it changes. An answer is given on a version of which it is known that it was the latest
// at some time between the question and the answer: it was read since, or was written over by the
// write that the answer is part of. So the Leases of a table are as linearizable as Leases that
// are objects.
//
// If the answer to a write is lost, all who asked for something that changes the table get that error, and
// what they asked for may land later: together, and only if nobody has written the table in between.
//
// # Identity
//
// The resourceVersion of an entry is the version of the table that it was written over, and how often the
// entry was written before in the same write. A table is written once over each of its versions, so no two
// writings of an entry have the same. The uid of an entry is the uid of the table with the resourceVersion of
// the creation. No two entries of one name have the same.
//
// # Room
//
// A table is one object, and bounded. Entries that were written together and say the same share the room of what they
// say. What would bring another holder into a table that has no room for it is refused, as
// a whole if it was asked for together. What takes an entry out never is, and a renewal has a reserve.
//
// # Together
//
// What belongs to one Together is asked when all goroutines of it ask, or are done: then it is one
// request, however many they are. It needs no timer for that.
//
// # What it does not do
//
// It has nothing to do with the LockTables of enforced locks, which follow the locks. It does not look for
// Leases that are objects beside a table: all clients of a cluster must use tables, or none. A table has
// no watch, and its entries have no finalizers.
package leasetable
