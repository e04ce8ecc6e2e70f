// Package faultinject stands between Janus and an API server, below client-go's own
// repetitions and under every client of Janus, own and impersonated. It names and
// records every attempt to send a request, and lets faults happen to chosen ones.
// It serves tests alone, over the real API server and over a model of it alike.
package faultinject
