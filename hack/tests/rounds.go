package main

// rounds is in how many runs of CI, one after the other, every part has its turn.
const rounds = 12

// turn returns the parts that a run of CI does beside the quick one: those that come next in
// the circle of all parts, as many as fit into the minutes. Run n begins where a twelfth of the
// parts has been passed n times, so that twelve runs in a row do all, whatever fits. A part that
// takes longer than that is given alone.
func turn(parts []part, run, minutes int) []part {
	circle := all(parts)
	if len(circle) == 0 {
		return nil
	}
	round := run % rounds
	begin, end := round*len(circle)/rounds, (round+1)*len(circle)/rounds
	var out []part
	spent := 0
	for i := range circle {
		next := circle[(begin+i)%len(circle)]
		if len(out) > 0 && begin+i >= end && spent+next.Minutes > minutes {
			break
		}
		out = append(out, next)
		spent += next.Minutes
	}
	return out
}
