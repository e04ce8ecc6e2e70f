// Package version holds the version that the build stamps into the binary.
package version

// Version is set by the linker; a build without it is a development build.
var Version = "dev"
