package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"janus.io/janus/controller"
	"janus.io/janus/internal/otlp"
	"janus.io/janus/internal/version"
)

// linger is how long the end of janusd waits for traces to be sent, and for events.
const linger = 2 * time.Second

// trace makes what tells a collector of Transactions; nil if there is none. flush sends
// what has not been sent yet, once nothing runs any more.
func trace(ctx context.Context, o options, log *zap.Logger) (traces *controller.Traces, flush func(), err error) {
	if o.tracing == "" {
		return nil, func() {}, nil
	}
	endpoint, err := otlp.Endpoint(o.tracing)
	if err != nil {
		return nil, nil, fmt.Errorf("trace: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, nil, fmt.Errorf("trace: find the name of this host: %w", err)
	}
	exporter := otlp.NewExporter(endpoint, []otlp.Attribute{
		{Key: "service.name", Value: "janusd"}, {Key: "service.version", Value: version.Version},
		{Key: "service.instance.id", Value: host}, {Key: "service.namespace", Value: o.namespace},
	}, clock.RealClock{}, log.Named("traces"))
	// Steps in flight are finished after ctx is done, and may end a Transaction.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	go exporter.Run(running, linger)
	log.Info("tracing Transactions", zap.String("endpoint", endpoint.Redacted()))
	return controller.NewTraces(exporter.Export, clock.RealClock{}), func() {
		stop()
		<-exporter.Done()
	}, nil
}
