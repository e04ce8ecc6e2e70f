package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/pprof"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection" // leader_election_master_status
	_ "k8s.io/component-base/metrics/prometheus/restclient"              // rest_client_*
	_ "k8s.io/component-base/metrics/prometheus/workqueue"               // workqueue_*
	"k8s.io/utils/clock"

	"janus.io/janus/internal/serving"
	"janus.io/janus/internal/version"
)

// servers are the HTTP servers of janusd.
type servers struct {
	running []*http.Server
	// stopPage ends what the page is sent, which has no end of its own.
	stopPage context.CancelFunc
}

// endpoint is what one of them serves.
type endpoint struct {
	name, addr string
	handler    http.Handler
	tls        *tls.Config // nil for plain HTTP
	// lasting bounds each answer; 0 for no bound.
	lasting time.Duration
}

// serve starts the servers for metrics, probes and profiles that are not turned off.
func serve(ctx context.Context, o options, c *clients, registry *prometheus.Registry, ready func() bool, log *zap.Logger) (servers, error) {
	following, stopPage := context.WithCancel(ctx)
	out := servers{stopPage: stopPage}
	page, err := page(following, o, c)
	if err != nil {
		out.stop(ctx)
		return servers{}, err
	}
	metrics, err := metricsEndpoint(o, c.own, registry, page, log)
	if err != nil {
		out.stop(ctx)
		return servers{}, err
	}
	health := http.NewServeMux()
	health.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, true) })
	health.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, ready()) })

	for _, e := range []endpoint{
		metrics,
		{name: "health probes", addr: o.healthAddr, handler: health},
		{name: "profiles", addr: o.pprofAddr, handler: profiles()},
	} {
		if e.addr == off {
			continue
		}
		server, err := listen(e, usual, log)
		if err != nil {
			out.stop(ctx)
			return servers{}, err
		}
		out.running = append(out.running, server)
	}
	return out, nil
}

// metricsEndpoint is /metrics, for those who may read it unless --metrics-secure is off, and
// beside it the page, if there is one.
func metricsEndpoint(o options, own kubernetes.Interface, registry *prometheus.Registry, page http.Handler, log *zap.Logger) (endpoint, error) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "janus_build_info", Help: "Always 1; the label tells the version.", ConstLabels: prometheus.Labels{"version": version.Version},
	})
	info.Set(1)
	// What the shards that are held are compared with.
	shards := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "janus_shards", Help: "Into how many shards the Transactions are divided: --shards.",
	})
	shards.Set(float64(o.shards))
	for _, c := range []prometheus.Collector{info, shards} {
		if err := registry.Register(c); err != nil {
			return endpoint{}, fmt.Errorf("register the metrics: %w", err)
		}
	}
	// client-go reports through component-base, whose registry also has the
	// metrics of the Go runtime and the process.
	all := promhttp.HandlerFor(prometheus.Gatherers{registry, legacyregistry.DefaultGatherer}, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	e := endpoint{name: "metrics", addr: o.metricsAddr, handler: mux}
	if !o.secure || o.metricsAddr == off {
		mux.Handle("GET /metrics", all)
		return e, nil
	}
	log = log.Named("metrics")
	guard := serving.NewGuard(own, clock.RealClock{}, log)
	mux.Handle("GET /metrics", guard.Protect(serving.Access{Path: "/metrics", Role: "janus-metrics-reader"}, all))
	if page != nil {
		page = guard.Protect(serving.Access{Path: pagePath, Role: "janus-ui-viewer", Password: true}, page)
		mux.Handle(pagePath, page)
		mux.Handle(pagePath+"/", page)
	}
	certificates, err := certificates(o, log)
	if err != nil {
		return endpoint{}, fmt.Errorf("serve metrics: %w", err)
	}
	e.tls, e.lasting = certificates.TLS(), serving.Lasting
	return e, nil
}

func certificates(o options, log *zap.Logger) (*serving.Certificates, error) {
	if o.certDir != "" {
		return serving.FromDirectory(o.certDir, clock.RealClock{}, log)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the name of this host: %w", err)
	}
	return serving.SelfSigned(host, clock.RealClock{}, log)
}

// profiles are what net/http/pprof has. It also puts them on the default mux, which
// nothing here serves.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func answer(w http.ResponseWriter, ok bool) {
	if !ok {
		http.Error(w, "not ready: the Transactions have not been listed yet", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// stop gives requests in flight two seconds, although ctx may be done.
func (s servers) stop(ctx context.Context) {
	s.stopPage()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	for _, server := range s.running {
		_ = server.Shutdown(ctx)
	}
}
