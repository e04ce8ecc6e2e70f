package adapter

import (
	"k8s.io/client-go/dynamic"

	"janus.io/janus/engine"
	"janus.io/janus/internal/openapi"
	"janus.io/janus/internal/target"
	"janus.io/janus/lockmgr"
	"janus.io/janus/snapshot"
)

// Parts are what the ports are made of.
type Parts struct {
	// Own is a client with the controller's own identity, for Transactions.
	Own      dynamic.Interface
	Resolver *target.Resolver
	Clients  *target.Clients
	Store    *snapshot.Store
	Locks    *lockmgr.Manager
	// Types tells how the fields of kinds merge.
	Types *openapi.Types
	// Parallel is how many targets of one Transaction are read and tried at once;
	// zero means 8.
	Parallel int
}

// Ports puts the parts together for the engine.
func Ports(p Parts) engine.Ports {
	if p.Parallel <= 0 {
		p.Parallel = 8
	}
	shared := newImages()
	return engine.Ports{
		Journal: NewJournal(p.Own),
		Locks:   NewLocks(p.Locks),
		Planner: &Planner{resolver: p.Resolver, clients: p.Clients, store: p.Store, images: shared, types: p.Types, parallel: p.Parallel},
		Changes: &Changes{clients: p.Clients, resolver: p.Resolver, store: p.Store, images: shared, types: p.Types, parallel: p.Parallel},
	}
}
