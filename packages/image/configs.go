package image

import (
	"fmt"
	"strings"
)

// Config is an ImageConfig of Crossplane: what is special about images whose name begins so.
type Config struct {
	Name string
	// Prefixes are those of the images that it is about.
	Prefixes []string
	// Rewrite replaces the longest of Prefixes that an image begins with; empty for none.
	Rewrite string
	// PullSecret is the name of a Secret in Crossplane's namespace; empty for none.
	PullSecret string
	// Verified says that signatures are to be verified.
	Verified bool
}

// Configs are all ImageConfigs of a cluster.
type Configs []Config

// AmbiguousError says that several ImageConfigs fit an image equally well. Crossplane takes any
// of them.
type AmbiguousError struct{ image, one, other string }

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("ImageConfigs %s and %s fit image %s equally well: Crossplane takes either", e.one, e.other, e.image)
}

// Location is where the image of a name is: elsewhere, if an ImageConfig rewrites it.
func (c Configs) Location(image string) (string, error) {
	best, prefix, err := c.best(image, func(one Config) bool { return one.Rewrite != "" })
	if err != nil || best == nil {
		return image, err
	}
	return best.Rewrite + strings.TrimPrefix(image, prefix), nil
}

// PullSecret is the name of the Secret for a location; empty for none.
func (c Configs) PullSecret(location string) (string, error) {
	best, _, err := c.best(location, func(one Config) bool { return one.PullSecret != "" })
	if err != nil || best == nil {
		return "", err
	}
	return best.PullSecret, nil
}

// Verification is the name of the ImageConfig by which the signature of an image is to be
// verified; empty for none.
func (c Configs) Verification(location string) (string, error) {
	best, _, err := c.best(location, func(one Config) bool { return one.Verified })
	if err != nil || best == nil {
		return "", err
	}
	return best.Name, nil
}

// best is the config with the longest prefix.
func (c Configs) best(image string, fits func(Config) bool) (*Config, string, error) {
	var best *Config
	var longest, other string
	for i := range c {
		if !fits(c[i]) {
			continue
		}
		prefix := ""
		for _, p := range c[i].Prefixes {
			if strings.HasPrefix(image, p) && len(p) > len(prefix) {
				prefix = p
			}
		}
		switch {
		case prefix == "":
		case best == nil || len(prefix) > len(longest):
			best, longest, other = &c[i], prefix, ""
		case len(prefix) == len(longest):
			other = c[i].Name
		}
	}
	if other != "" {
		return nil, "", &AmbiguousError{image, best.Name, other}
	}
	return best, longest, nil
}
