// Package registries sends requests to container registries for artifacts and images.
//
// # Invariants
//
// A request is repeated only where that may help, as often as a Patience allows, and not
// before the time that the registry asks for. A registry that sends nothing is given up.
// No error has the address of a request, which may be one that the registry has signed, nor
// anything that it was sent: what a registry says is made printable first.
package registries
