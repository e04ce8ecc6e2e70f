// Package fieldmerge is the algebra of the fields of an object: what a change has set and what
// others have written since, who owns each field, and which object gives a field back its value
// and its owner without touching what is another client's. It has no clients and sends nothing;
// an object goes in as the API server gave it, with its managedFields, and the types of its
// kind, where they are known, say which lists are maps by a key, sets, or one value.
//
// Its invariant: a field that the change did not set keeps the value and the owners that it has
// now.
package fieldmerge
