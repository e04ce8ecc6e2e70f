// Package resolve finds the versions of all packages after a change: which are installed,
// which move, which come, and which go; or it proves that there are none.
//
// # What is looked for
//
// Of all states in which every range of every package holds, no dependency is missing and
// there is no cycle, the one that changes the fewest installed packages. Of several such
// states one in which no package could be preferred without another being less preferred:
// the installed version, then the newest version that the ranges of all installed packages
// allow, then the newest of the others.
//
// A package moves only if what is wanted depends on it, by however many steps. All others
// stay as they are; their ranges hold for what moves.
//
// # Invariants
//
// A state that is returned has been checked as a whole, apart from how it was found. A
// Conflict is returned only when every version that a registry has was ruled out; a search
// that was given up is an error of its own. Nothing is asked of a registry of which the
// installed version will do.
//
// The package does no I/O and knows neither images nor clusters.
package resolve
