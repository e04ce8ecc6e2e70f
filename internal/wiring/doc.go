// Package wiring implements the engine's ports: the journal is the
// Transaction object itself, the locks are lockmgr's Leases, the planner reads
// targets and keeps before-images with snapshot, and the changes are mutate's
// strategies.
//
// It is the one place where a Transaction's words become targets, clients and
// records, so that engine, mutate, snapshot and lockmgr need not know each other.
package wiring
