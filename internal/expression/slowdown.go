//go:build !race

package expression

// slowdown is how much slower evaluations are than in a release.
const slowdown = 1
