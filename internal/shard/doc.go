// Package shard divides the Transactions of a cluster between the replicas of janusd.
//
// A Transaction is in one of N shards, by a hash of its namespace and name. For each shard
// there is a Lease, and client-go's leader election says which replica holds it; nobody
// else runs its Transactions. What is handed over is finished first: a replica gives a
// Lease back only when what it does under it has ended.
//
// Which shards a replica contends for follows from which replicas are alive. Each keeps a
// Lease of its own, by which the others see it, judged by their own clocks. All compute the
// same division from the same list, so nobody has to tell anyone anything. Where their
// lists differ for a while, the Leases of the shards decide.
//
// None of that is what makes Janus safe: two replicas that run one Transaction at the same
// time do no harm (see package engine). It keeps them from doing the work twice.
package shard
