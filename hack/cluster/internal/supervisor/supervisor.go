package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

const (
	// startTimeout bounds the time to ready on a machine that is busy with
	// other things; an idle one needs a few seconds.
	startTimeout = 2 * time.Minute
	// stopGrace is what a component gets to end in order before it is killed.
	stopGrace = 3 * time.Second
)

// Environment is what Run needs besides its options.
type Environment struct {
	// Self is the path of the binary that holds the components.
	Self string
	// Stdin is read to its end if Options.StopOnStdinEOF is set.
	Stdin io.Reader
	// Stdout receives the line of each component and the final one.
	Stdout io.Writer
	// Stderr receives the logs that go to no file.
	Stderr io.Writer
	// Now is the clock.
	Now func() time.Time
}

// supervisor runs one cluster. Its methods run on one goroutine, the one that
// called Run.
type supervisor struct {
	env     Environment
	options Options
	layout  layout
	access  access
	began   time.Time
	// running holds the processes that have not been seen to end, in the order
	// in which they were started.
	running []*process
	// exits receives each process once. Its room is never used up, because the
	// supervisor reads it whenever it waits.
	exits chan *process
	// logs holds the open log file of each component.
	logs map[string]io.WriteCloser
	// stderr is shared by the components without a log file.
	stderr io.Writer
}

// Run starts a cluster and keeps it until ctx ends, then stops it. It returns
// nil after such a stop, a *ExitError if a component ended by itself, and
// another error if the cluster could not be started. Every process it started
// is gone when it returns.
func Run(ctx context.Context, options Options, env Environment) (err error) {
	options, err = options.absolute()
	if err != nil {
		return err
	}
	s := &supervisor{
		env:     env,
		options: options,
		began:   env.Now(),
		exits:   make(chan *process, 16),
		logs:    map[string]io.WriteCloser{},
		stderr:  &lockedWriter{w: env.Stderr},
	}
	if s.layout, err = newLayout(options); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.layout.remove()) }()
	if s.access, err = newAccess(s.layout, s.began); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.access.release()) }()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if options.StopOnStdinEOF {
		go func() {
			_, _ = io.Copy(io.Discard, env.Stdin)
			cancel(errors.New("standard input ended"))
		}()
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.start(ctx); err != nil {
		if ctx.Err() != nil {
			// Nobody wants the cluster any more, so this is a stop.
			return nil
		}
		return err
	}
	return s.watch(ctx)
}

// start brings the components up and announces the cluster.
func (s *supervisor) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	s.say("starting: dir=%s pid=%d", s.layout.dir, os.Getpid())
	if err := writeFile(s.layout.auditPolicy(), []byte(auditPolicy)); err != nil {
		return err
	}
	server := s.access.api.url()
	// The API server would wait for its store by itself, but not be ready any
	// sooner, and fill its log with failed attempts.
	store := etcdComponent(s.env.Self, s.layout, s.options.EtcdFsync)
	api := apiServerComponent(s.env.Self, s.layout, s.access, s.options.AuditLog).emulating(s.options.Emulate).with(s.options.FeatureGates)
	if err := s.launch(ctx, store); err != nil {
		return err
	}
	if err := s.launch(ctx, api); err != nil {
		return err
	}
	clients, err := s.clients(ctx)
	if err != nil {
		return err
	}
	if err := s.launch(ctx, clients...); err != nil {
		return err
	}
	if err := writeJSON(s.kubeconfigPath(), s.access.adminConfig); err != nil {
		return err
	}
	s.say("ready: kubeconfig=%s server=%s (%.1f s)", s.kubeconfigPath(), server, s.elapsed())
	return nil
}

// clients returns the components that need the API server, and prepares what
// they need in it.
func (s *supervisor) clients(ctx context.Context) ([]component, error) {
	if s.options.CRDs != "" {
		if err := s.access.admin.createCRDs(ctx, s.access.api.url(), s.options.CRDs); err != nil {
			return nil, err
		}
	}
	var list []component
	nodes := s.options.Nodes
	if s.options.ControllerManager {
		list = append(list, controllerManagerComponent(s.env.Self, s.layout, s.access, nodes > 0).emulating(s.options.Emulate))
	}
	if s.options.Scheduler {
		list = append(list, schedulerComponent(s.env.Self, s.layout, s.access).emulating(s.options.Emulate))
	}
	if nodes == 0 {
		return list, nil
	}
	stages, err := exec.CommandContext(ctx, s.options.KwokBinary, "stages").Output()
	if err != nil {
		return nil, fmt.Errorf("%s stages: %w", s.options.KwokBinary, err)
	}
	if err := writeFile(s.layout.stages(), stages); err != nil {
		return nil, err
	}
	if err := s.access.admin.createNodes(ctx, s.access.api.url(), nodes); err != nil {
		return nil, err
	}
	return append(list, kwokComponent(s.options.KwokBinary, s.layout, s.access, nodes)), nil
}

// launch starts the components together and returns when all are ready.
func (s *supervisor) launch(ctx context.Context, list ...component) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		name string
		err  error
	}
	outcomes := make(chan outcome, len(list))
	for _, c := range list {
		if err := s.run(c); err != nil {
			return err
		}
		go func() { outcomes <- outcome{c.name, await(ctx, c.ready)} }()
	}
	for range list {
		select {
		case p := <-s.exits:
			s.forget(p)
			return p.exitError()
		case o := <-outcomes:
			if o.err != nil {
				return fmt.Errorf("wait for %s: %w", o.name, o.err)
			}
			s.say("%s is ready (%.1f s)", o.name, s.elapsed())
		}
	}
	return nil
}

// watch keeps the cluster until ctx ends or a component ends by itself.
func (s *supervisor) watch(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case p := <-s.exits:
			s.forget(p)
			if !s.options.RestartKilled || !p.killed() {
				return p.exitError()
			}
			if err := s.run(p.component); err != nil {
				return err
			}
			s.say("%s was ended by a signal and is started again (%.1f s)", p.component.name, s.elapsed())
		}
	}
}

func (s *supervisor) kubeconfigPath() string {
	if s.options.Kubeconfig != "" {
		return s.options.Kubeconfig
	}
	return s.layout.kubeconfig("admin")
}

func (s *supervisor) elapsed() float64 { return s.env.Now().Sub(s.began).Seconds() }

// say writes one line of progress. A reader that has gone away does not stop
// the cluster.
func (s *supervisor) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.env.Stdout, format+"\n", args...)
}
