// Package packages plans changes of Crossplane packages in front of unmodified Crossplane: it
// reads what a cluster has of packages, fetches images, and puts together what its parts
// decide.
//
//	version    versions and ranges, as Crossplane judges them
//	image      images: names, registries, what is in them
//	resolve    the versions of all packages after a change, or the proof that there are none
//	schema     what a new definition does to custom resources
//	installed  what a cluster has of packages
//	change     what a change consists of
//	check      all that is wrong with it
//	compile    the Transaction that makes it
//
// # Invariant
//
// Nothing is written, to the cluster or to a registry. What is planned is planned for the state
// that was read first; the Transaction fails before its first change if that is another.
package packages
