// Package readiness tells from an object whether it is ready: what readyWhen with status
// Ready waits for.
//
// The rules are those that tools for Kubernetes share (kstatus), but for the kinds of a
// table of this package: of those, kstatus says that they are ready before they are, that
// they never are though they are, or that they have failed though they may become ready.
// docs/order-and-readiness.md says for each kind what it means.
//
// A package of pure functions: it reads no cluster and no clock, so what it says depends on
// the object alone.
package readiness
