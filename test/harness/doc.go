// Package harness runs Janus inside a test, on a real API server, and gives
// tests the words to set up objects, run Transactions and look at what is there
// afterwards.
//
// What it starts is what janusd runs: the same wiring on the same engine, with
// the delays of the policy made short, and the same user with the same rights: a
// token of janusd's ServiceAccount, which has what deploy/rbac gives it. A test may
// put itself between Janus and the API server with a transport of its own.
package harness
