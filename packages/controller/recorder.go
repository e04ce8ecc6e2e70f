package controller

import (
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/packages/controller/progress"
)

// Recorder is the Observer that turns what has happened into events, metrics and log lines.
type Recorder struct {
	recorder events.EventRecorder
	metrics  *Metrics
	log      *zap.Logger
}

// NewRecorder makes a Recorder.
func NewRecorder(recorder events.EventRecorder, metrics *Metrics, log *zap.Logger) *Recorder {
	return &Recorder{recorder: recorder, metrics: metrics, log: log}
}

// action is that of all events.
const action = "ChangePackages"

// Happened implements Observer. Events about the cluster are in the namespace default.
func (r *Recorder) Happened(p *api.PackageTransaction, what progress.Happening) {
	message := errclass.Printable(what.Message)
	kind := corev1.EventTypeNormal
	if what.Warning {
		kind = corev1.EventTypeWarning
	}
	r.log.Info("a PackageTransaction has made progress", zap.String("packageTransaction", p.Name), zap.String("reason", what.Reason), zap.String("message", message))
	// With the version two events are not taken for one that is repeated.
	r.recorder.Eventf(&corev1.ObjectReference{
		APIVersion: api.GroupVersion.String(), Kind: api.Kind.Kind, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
	}, nil, kind, what.Reason, action, "%s", message)
	r.metrics.happened(p, what)
}

// Looked implements Observer.
func (r *Recorder) Looked(at *Census) { r.metrics.looked(at) }
