// Package settings is what janusd tells clients of how it runs: a ConfigMap in its own namespace,
// which every user of the cluster may read. It has no content of any object.
//
// # Invariant
//
// What cannot be read whole is an error, so that a client never takes it for a shorter list.
package settings
