package wiring

import (
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/openapi"
	"janus.io/janus/internal/target"
	"janus.io/janus/lockmgr"
	"janus.io/janus/revision"
	"janus.io/janus/snapshot"
)

// Parts are what the ports are made of.
type Parts struct {
	// Own is a client with the controller's own identity, for Transactions.
	Own      dynamic.Interface
	Resolver *target.Resolver
	Clients  *target.Clients
	Store    *snapshot.Store
	// Revisions are the history.
	Revisions *revision.Store
	Locks     *lockmgr.Manager
	// Types tells how the fields of kinds merge.
	Types *openapi.Types
	// Parallel is how many targets of one Transaction are read and tried at once;
	// zero means 8.
	Parallel int
	// ImagesLimit is how many bytes the before-images of one Transaction may take; zero
	// means DefaultImagesLimit.
	ImagesLimit int64
	// WaveBytes is how many bytes of before-images are in memory until they are saved; zero
	// means DefaultWaveBytes.
	WaveBytes int
	// Clock tells how long a call takes; nil means the real one.
	Clock clock.PassiveClock
	// Lateness is as in engine.Policy.
	Lateness time.Duration
}

// Ports puts the parts together for the engine.
func Ports(p Parts) engine.Ports {
	if p.Parallel <= 0 {
		p.Parallel = 8
	}
	if p.ImagesLimit <= 0 {
		p.ImagesLimit = DefaultImagesLimit
	}
	if p.WaveBytes <= 0 {
		p.WaveBytes = DefaultWaveBytes
	}
	if p.Clock == nil {
		p.Clock = clock.RealClock{}
	}
	if p.Lateness <= 0 {
		p.Lateness = plan.DefaultLateness
	}
	late := staleness{journal: NewJournal(p.Own), clock: p.Clock, lateness: p.Lateness}
	both := &shared{
		clients: p.Clients, resolver: p.Resolver, store: p.Store, images: newImages(), types: p.Types, parallel: p.Parallel,
		written: newWritten(), patience: newPatience(p.Clock), rights: newRights(p.Clock), sources: newSources(p.Own, p.Clock, p.Parallel), clock: p.Clock,
	}
	history := newHistory(p.Revisions, p.Store, NewJournal(p.Own))
	return engine.Ports{
		Journal: NewJournal(p.Own),
		Locks:   newLocks(p.Locks, late),
		Planner: &Planner{
			shared: both, late: late, tried: newDryRunCache(p.Clock), locks: p.Locks, history: history, imagesLimit: p.ImagesLimit,
			waveBytes: p.WaveBytes,
		},
		History:   history,
		Changes:   &Changes{both},
		Gates:     &Gates{both},
		Approvals: &Approvals{NewJournal(p.Own)},
	}
}
