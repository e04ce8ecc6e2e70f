// Package apisim is a model of the Kubernetes API server that lives in memory, for
// tests. A [Server] is an http.RoundTripper: a rest.Config with it as Transport and
// any Host is all that the real clients of client-go need, and so the whole of
// Janus runs on it unchanged, thousands of times a second.
//
//	server := apisim.New(apisim.Options{})
//	config := &rest.Config{Host: "http://sim", Transport: server, QPS: -1}
//
// # Invariant
//
// What the model answers is what a real API server of the version in go.mod would
// have answered, with the same objects stored afterwards: conformance_test.go holds
// the one against the other with random sequences of requests. Where the model
// does not know a thing, it refuses the request with 501 and a message that says
// so, rather than guess.
//
// Requests are handled one at a time, each of them atomically. A Server starts no
// goroutine and reads no clock but the one that it was given, and so can be used in
// a bubble of testing/synctest. Nothing is shared between two Servers but caches
// that do not change.
//
// # What the control plane does later
//
// Garbage collection and the finalization of namespaces are done by controllers, at
// some time after the write that gives rise to them. Here they are steps that the
// test takes, see [Server.Collect]. What admission changes is said by Options.Mutate.
//
// # What it does not do
//
// It has no Services, Pods and workloads, no strategic merge patches, no pages of
// lists, no tables, no bookmarks, no answers in protobuf, no subresource but status, and
// no conversion but that of the strategy None; two custom kinds cannot be of one group and
// version. Of the rules in CEL it knows the one that makes the spec of a Transaction
// immutable. A CustomResourceDefinition is established at once, its own fields are not
// checked, and its objects go with it at once. Two contents of an immutable ConfigMap or
// Secret that differ in an empty map are the same. Whether a write changes nothing is not
// always told right where the data of a Secret have a null. Events of the two groups are
// two kinds.
package apisim
