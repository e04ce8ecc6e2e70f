// Package openapi knows the types of the kinds that a cluster serves, custom
// resources included: which fields an object has, and which of its lists are
// sets, or maps by a key, or one value. It makes the types of
// structured-merge-diff out of the OpenAPI v3 schemas that the API server
// publishes, in the way in which the API server makes its own.
//
// Invariant: a kind is taken to have no schema only if the API server said so.
// While the API server does not answer there is an error, and no type: without
// the schema, two people who edit two containers of one Pod would seem to be in
// conflict.
//
// It does not read objects and compares nothing.
package openapi
