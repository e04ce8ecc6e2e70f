// Package main is a program that applies objects as the kustomize-controller of Flux does, so
// that what Transactions cost can be measured beside it on the same machine.
//
// It is a module of its own, because Flux's library for server-side apply brings
// controller-runtime, which Janus does without.
package main
