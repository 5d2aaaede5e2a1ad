/** A name that differs by more letters than these from all known ones is not a slip of the pen. */
const mostSlips = 4;

/**
 * Sentences on variables that begin with `CARILLON_` and mean nothing to this version, with the known name that is
 * nearest. Values are never quoted.
 */
export function unknownVariables(env: Record<string, unknown>, known: readonly string[]): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('CARILLON_') && !known.includes(name))
    .sort()
    .map((name) => {
      const nearest = nearestOf(name, known);
      return `${name} is not a variable of Carillon${nearest === undefined ? '' : `: did you mean ${nearest}?`}`;
    });
}

function nearestOf(name: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let least = mostSlips + 1;
  for (const candidate of known) {
    const slips = editDistance(name.slice(0, 100), candidate);
    if (slips < least) [nearest, least] = [candidate, slips];
  }
  return nearest;
}

/** Letters to add, drop or replace to make one text of the other (Levenshtein). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
