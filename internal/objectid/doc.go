// Package objectid names an object of a cluster, whichever version of its kind a client uses.
//
// Invariant: two IDs are equal exactly if they name the same object. So an ID has the group,
// since kinds of different groups are different objects even if their names agree, and no
// version, since every version of a kind shows the same object.
//
// It resolves nothing: package target finds the resource of a kind.
package objectid
