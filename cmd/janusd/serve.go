package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection" // leader_election_master_status
	_ "k8s.io/component-base/metrics/prometheus/restclient"              // rest_client_*
	_ "k8s.io/component-base/metrics/prometheus/workqueue"               // workqueue_*

	"janus.io/janus/internal/version"
)

// servers are the HTTP servers of janusd.
type servers []*http.Server

// serve starts the servers for metrics and probes that are not turned off.
func serve(ctx context.Context, o options, registry *prometheus.Registry, ready func() bool, log *zap.Logger) (servers, error) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "janus_build_info", Help: "Always 1; the label tells the version.", ConstLabels: prometheus.Labels{"version": version.Version},
	})
	info.Set(1)
	if err := registry.Register(info); err != nil {
		return nil, fmt.Errorf("register the metrics: %w", err)
	}
	metrics := http.NewServeMux()
	// client-go reports through component-base, whose registry also has the
	// metrics of the Go runtime and the process.
	metrics.Handle("GET /metrics", promhttp.HandlerFor(
		prometheus.Gatherers{registry, legacyregistry.DefaultGatherer}, promhttp.HandlerOpts{}))
	health := http.NewServeMux()
	health.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, true) })
	health.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, ready()) })

	var out servers
	for _, s := range []struct {
		name, addr string
		handler    http.Handler
	}{{"metrics", o.metricsAddr, metrics}, {"health probes", o.healthAddr, health}} {
		if s.addr == off {
			continue
		}
		server, err := listen(s.name, s.addr, s.handler, log)
		if err != nil {
			out.stop(ctx)
			return nil, err
		}
		out = append(out, server)
	}
	return out, nil
}

func listen(name, addr string, handler http.Handler, log *zap.Logger) (*http.Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", name, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Info("serving "+name, zap.String("address", listener.Addr().String()))
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serving failed", zap.String("server", name), zap.Error(err))
		}
	}()
	return server, nil
}

func answer(w http.ResponseWriter, ok bool) {
	if !ok {
		http.Error(w, "not ready: the Transactions have not been listed yet", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// stop gives requests in hand two seconds, although ctx may be done.
func (s servers) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	for _, server := range s {
		_ = server.Shutdown(ctx)
	}
}
