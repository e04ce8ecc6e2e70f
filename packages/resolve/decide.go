package resolve

import (
	"context"
	"iter"
	"slices"

	"janus.io/janus/packages/version"
)

// need is a package of which a version is to be found.
type need struct {
	source string
	// by is the source that needs it; empty for what is wanted.
	by string
}

// failure is that the decisions so far lead to no solution.
type failure struct {
	// blame are the sources whose decisions are the cause: as long as none of them is
	// another, nothing changes.
	blame    map[string]bool
	conflict *Conflict
}

func blame(sources ...string) map[string]bool {
	out := map[string]bool{}
	for _, source := range sources {
		out[source] = true
	}
	return out
}

func (f *failure) blaming(sources map[string]bool) {
	for source := range sources {
		f.blame[source] = true
	}
}

// next finds versions for all that is on the agenda. Without a failure and an error they are
// in s.decided.
func (s *search) next(ctx context.Context, agenda []need) (*failure, error) {
	for len(agenda) > 0 && s.decided[agenda[0].source] != nil {
		agenda = agenda[1:]
	}
	if len(agenda) == 0 {
		return s.whole(ctx)
	}
	this, rest := agenda[0], agenda[1:]
	failed := &failure{blame: s.askers(this.source), conflict: &Conflict{Source: this.source, Asked: s.asks(this.source), Removed: s.removed[this.source]}}
	for v, err := range s.candidates(ctx, this.source) {
		if err != nil {
			return nil, err
		}
		f, err := s.try(ctx, this, v, rest)
		if err != nil || f == nil {
			return nil, err
		}
		if f.conflict != nil && !f.blame[this.source] {
			return f, nil
		}
		failed.conflict.add(v, f.conflict)
		failed.blaming(f.blame)
	}
	delete(failed.blame, this.source)
	failed.conflict.judge()
	return failed, nil
}

// candidates are the versions of a source, the preferred ones first. The registry is asked
// only once the installed version has failed.
func (s *search) candidates(ctx context.Context, source string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if s.removed[source] {
			return
		}
		if v, ok := s.wanted[source]; ok {
			yield(v, nil)
			return
		}
		there, ok := s.installed[source]
		if ok && !yield(there.Version, nil) {
			return
		}
		tags, err := s.versions(ctx, source)
		if err != nil {
			yield("", err)
			return
		}
		for _, v := range slices.Concat(tags, s.digests(source)) {
			if v != there.Version && !yield(v, nil) {
				return
			}
		}
	}
}

// digests are those that the packages decided so far ask for.
func (s *search) digests(source string) []string {
	var out []string
	for _, by := range s.order {
		for _, d := range s.decided[by].Dependencies {
			if d.Source == source && version.IsDigest(d.Range) && !slices.Contains(out, d.Range) {
				out = append(out, d.Range)
			}
		}
	}
	return out
}

// try decides for a version and goes on.
func (s *search) try(ctx context.Context, this need, v string, rest []need) (*failure, error) {
	if s.steps++; s.steps > s.limit {
		return nil, &GivenUpError{Steps: s.limit}
	}
	there, installed := s.installed[this.source]
	moves := installed && there.Version != v && s.wanted[this.source] == ""
	if moves && len(s.moved()) >= s.moves {
		s.short = true
		return &failure{blame: blame(append(s.moved(), this.source)...), conflict: excluded(v, "would move")}, nil
	}
	for by := range s.askers(this.source) {
		for _, d := range s.decided[by].Dependencies {
			if d.Source == this.source && !allows(d.Range, v) {
				return &failure{blame: blame(by, this.source), conflict: excluded(v, "")}, nil
			}
		}
	}
	o, err := s.dependencies(ctx, this.source, v)
	if err != nil {
		return nil, err
	}
	if o.unusable != nil {
		return &failure{blame: blame(this.source), conflict: excluded(v, o.unusable.Why)}, nil
	}
	for _, d := range o.dependencies {
		if c := s.decided[d.Source]; c != nil && !allows(d.Range, c.Version) {
			return &failure{blame: blame(d.Source, this.source), conflict: excluded(v, "requires "+d.Source+" "+d.Range+", and that is "+c.Version)}, nil
		}
		rest = append(slices.Clip(rest), need{source: d.Source, by: this.source})
	}
	s.decided[this.source] = &choice{Package: Package{this.source, v, o.dependencies}, by: this.by, moves: moves}
	s.order = append(s.order, this.source)
	f, err := s.next(ctx, rest)
	if err == nil && f == nil {
		return nil, nil
	}
	delete(s.decided, this.source)
	s.order = s.order[:len(s.order)-1]
	return f, err
}

// moved are the decided packages of which another version is installed.
func (s *search) moved() []string {
	var out []string
	for source, c := range s.decided {
		if c.moves {
			out = append(out, source)
		}
	}
	return out
}

// askers are the decided packages that need a source.
func (s *search) askers(source string) map[string]bool {
	out := map[string]bool{}
	for by, c := range s.decided {
		if slices.ContainsFunc(c.Dependencies, func(d Dependency) bool { return d.Source == source }) {
			out[by] = true
		}
	}
	return out
}
