/*
 * Reads the file "traces": of each trace a line with the setting and how many events there are, and a
 * line for each event. It says at the end how far the model has come with each, and which transitions
 * are on runs with whole traces, as pan -d numbers them.
 */
#include <stdio.h>
#include <stdlib.h>

#define SETTING 12
#define EVENT   10
static int traces, (*of)[SETTING + 1], (**event)[EVENT], *furthest;
/* The path of the search. */
extern long depth;
extern Trail *trail;

static unsigned char on_a_run[65536];

static void tell(void)
{
	int k;
	for (k = 0; k < traces; k++)
		printf("trace %d: %d of %d\n", k, furthest[k], of[k][SETTING]);
	for (k = 0; k < 65536; k++)
		if (on_a_run[k])
			printf("on a run: %d\n", k);
}

static int number(FILE *file)
{
	int n;
	if (fscanf(file, "%d", &n) != 1)
		exit(9);
	return n;
}

static void read_traces(void)
{
	int k, i, j;
	FILE *file = fopen("traces", "r");
	if (!file)
		exit(9);
	traces = number(file);
	of = calloc(traces, sizeof *of);
	event = calloc(traces, sizeof *event);
	furthest = calloc(traces, sizeof *furthest);
	for (k = 0; k < traces; k++) {
		for (i = 0; i <= SETTING; i++)
			of[k][i] = number(file);
		event[k] = calloc(of[k][SETTING], sizeof *event[k]);
		for (i = 0; i < of[k][SETTING]; i++)
			for (j = 0; j < EVENT; j++)
				event[k][i][j] = number(file);
	}
	fclose(file);
	atexit(tell);
}

/* The n-th event is due. Of a trace that has happened once no other run is looked for. */
static void due(int k, int n)
{
	int whole = of[k][SETTING], *e;
	long d;
	if (furthest[k] == whole || n == whole) {
		now.strayed = 1;
		if (furthest[k] < whole)
			for (d = 1; d <= depth; d++) {
				Trail *t = &trail[d];
				if (t->o_t)
					on_a_run[t->o_t->t_id] = 1;
			}
		furthest[k] = whole;
		return;
	}
	if (furthest[k] < n)
		furthest[k] = n;
	e = event[k][n];
	now.due.what = e[0]; now.due.by = e[1]; now.due.item = e[2]; now.due.uid = e[3]; now.due.val = e[4]; now.due.mgr = e[5];
	now.due.phase = e[6]; now.due.st0 = e[7]; now.due.st1 = e[8]; now.due.finalizer = e[9];
}

static void set(int k)
{
	int *s = of[k];
	now.kinds[0] = s[0]; now.kinds[1] = s[1]; now.window = s[2]; now.processes = s[3]; now.crashes = s[4]; now.losts = s[5];
	now.lates = s[6]; now.denied = s[7]; now.waits = s[8]; now.foreign = s[9]; now.overdue = s[10]; now.writer = s[11];
	due(k, 0);
}
