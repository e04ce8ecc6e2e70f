package otlp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Span is something that took place from Start to End.
type Span struct {
	TraceID [16]byte
	ID      [8]byte
	Parent  [8]byte // zero for the root
	Name    string
	// Start and End may be equal, for what did not take place.
	Start, End time.Time
	// Failure is why it failed; empty if it did not.
	Failure    string
	Attributes []Attribute
	Events     []Event
}

// Attribute is something to know of a span.
type Attribute struct{ Key, Value string }

// Event is something that happened at a time.
type Event struct {
	Name string
	At   time.Time
}

// TraceID is that of what an object with this uid does: the uid itself, so that it is
// found by what kubectl shows.
func TraceID(uid string) [16]byte {
	var id [16]byte
	if raw, err := hex.DecodeString(strings.ReplaceAll(uid, "-", "")); err == nil && len(raw) == len(id) {
		copy(id[:], raw)
		return id
	}
	sum := sha256.Sum256([]byte(uid))
	copy(id[:], sum[:])
	return id
}

// SpanID is that of a part of it. Every process makes the same.
func SpanID(uid, part string) [8]byte {
	var id [8]byte
	sum := sha256.Sum256([]byte(uid + "/" + part))
	copy(id[:], sum[:])
	return id
}

// message is the spans as the protocol has them. TracesData has the same form on the wire
// as the request, which is in a package that imports gRPC.
func message(resource []Attribute, spans []Span) *tracev1.TracesData {
	out := make([]*tracev1.Span, 0, len(spans))
	for i := range spans {
		out = append(out, spans[i].message())
	}
	return &tracev1.TracesData{ResourceSpans: []*tracev1.ResourceSpans{{
		Resource:   &resourcev1.Resource{Attributes: attributes(resource)},
		ScopeSpans: []*tracev1.ScopeSpans{{Scope: &commonv1.InstrumentationScope{Name: "janus.io/janus"}, Spans: out}},
	}}}
}

func (s *Span) message() *tracev1.Span {
	m := &tracev1.Span{
		TraceId: s.TraceID[:], SpanId: s.ID[:], Name: s.Name, Kind: tracev1.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanoseconds(s.Start), EndTimeUnixNano: nanoseconds(s.End),
		Attributes: attributes(s.Attributes), Status: &tracev1.Status{},
	}
	if s.Parent != [8]byte{} {
		m.ParentSpanId = s.Parent[:]
	}
	if s.Failure != "" {
		m.Status = &tracev1.Status{Code: tracev1.Status_STATUS_CODE_ERROR, Message: s.Failure}
	}
	for _, event := range s.Events {
		m.Events = append(m.Events, &tracev1.Span_Event{Name: event.Name, TimeUnixNano: nanoseconds(event.At)})
	}
	return m
}

// nanoseconds since 1970; nothing that happens is before.
func nanoseconds(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

func attributes(all []Attribute) []*commonv1.KeyValue {
	var out []*commonv1.KeyValue
	for _, a := range all {
		if a.Value != "" {
			out = append(out, &commonv1.KeyValue{
				Key: a.Key, Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: a.Value}},
			})
		}
	}
	return out
}
