// Package protocol checks a model of Janus' protocol: saga.pml, in Promela, which Spin explores in
// every order of steps. docs/protocol.md says what is modelled and what is not.
//
// The test runs each configuration, which has to be free of errors, and each mutation, which has
// to break the guarantee that is named beside it. It needs spin and a C compiler.
//
// Other tests run Janus, have Project turn the evidence for the oracle into a Trace, and ask a Model
// for a run with it: trace.pml and trace.h. The package does not judge what Janus does; it says whether
// the model does so too.
package protocol
