// Package gitops has only tests: they show the Transactions of testdata/gitops, which real
// runs have left there, to the scripts and expressions of deploy/gitops, as Argo CD and Flux
// do. Below it are programs that apply manifests as the two do, for test/e2e/interop.
//
// It is a module of its own, because it needs the engine of Argo CD, its interpreter of Lua, the
// library by which Flux applies, and Flux's own evaluator of health expressions. Janus needs none
// of them.
package gitops
