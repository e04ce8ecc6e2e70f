// Package packages installs Janus in each of the ways that it is offered in, on a real
// cluster with simulated Nodes: it works there, can be upgraded under a Transaction that
// runs, and can be taken away again. Anyone who is given rights by it needs each of them. The
// package consists of tests alone.
package packages
