// Package oracle holds what happened in a run against the guarantees of Janus. It
// knows nothing but evidence: every version of every object, as an independent
// watch has seen it, and every request of Janus, as the line to the API server has
// carried it. It serves tests alone, over the real API server and over a model of
// it alike.
//
// A version is Janus' if the answer to a request of Janus shows it, or if it follows
// from one that was answered by nothing: a deletion, the last finalizer taken off.
// Every other version is another client's. Whether a request is a change or its
// compensation, its form tells; whether it was allowed, the version of the Transaction
// that was stored last before it. Revisions are one order over all objects, so that is
// well defined.
//
// What the evidence does not show is not judged:
//
//   - A request that reached the API server and of which neither side has an answer is
//     known by its field manager alone. A deletion has none: it counts as another
//     client's.
//   - A write of another client that changes no value, such as an apply of the value that
//     a change has set, counts for owners, and for values where a rollback takes that
//     value away; not in lists.
//   - Which lists have keys is known for Kubernetes' own and from Evidence.ListKeys; any
//     other is one value. An explicit null is the same as nothing.
//   - What the API server sets by itself beside a change is held against a rollback as
//     far as values go, and not against a commit, where a change is looked for and
//     nothing else is excluded but in ConfigMaps, Secrets and metadata.
//   - Who owns the fields of an object that another client has deleted or made since, or of
//     which a field is known to be not rolled back. Of any other object it is what others have
//     done to who owns a field that is left out, and no more.
//   - Jobs, Pods and claims that were re-created are not compared with what they were.
//   - Of a Transaction whose status another client has written, only what it did to others
//     is judged: what it reports is not its own word.
//   - Times in Leases prove something only if all processes had one clock.
package oracle
