// Package check finds all that is wrong with a change of packages before anything is written,
// all of it at once.
//
// An error stands in the way: Crossplane would refuse the change, or would carry it out and
// harm packages or data. A warning is what people should know before they go on.
//
// It does no I/O: what the cluster has it is given.
package check
