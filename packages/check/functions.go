package check

import "slices"

// functions checks that nothing that stays runs a function that stops.
func (k *checking) functions() {
	going := k.change.Going()
	for _, function := range k.change.Stopped() {
		if why := k.change.Found.RunsUnread; why != "" {
			k.warn(Unverified, "Function %s: whether anything runs it is not known: %s", function, why)
		}
		var users []string
		for _, user := range k.change.Found.Runs[function] {
			if !going[user] {
				users = append(users, user.String())
			}
		}
		if slices.Sort(users); len(users) > 0 {
			k.fail(HasDependents, "Function %s would stop, and runs in %s: change or delete that first", function, few(users, len(users)))
		}
	}
}
