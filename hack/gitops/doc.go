// Package gitops has no code, only tests: they show the Transactions of testdata/gitops,
// which real runs have left there, to the scripts and expressions of deploy/gitops, as Argo
// CD and Flux do.
//
// It is a module of its own, because it needs Argo CD's interpreter of Lua and Flux's own
// evaluator of health expressions, and Janus needs neither.
package gitops
