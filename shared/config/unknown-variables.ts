/** Maximum edit distance at which a known name is suggested. */
const maxEdits = 4;

/**
 * Returns warnings about unknown variables that begin with `CARILLON_`, with the most similar known
 * name. Never quotes values.
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
  let smallest = maxEdits + 1;
  for (const candidate of known) {
    const edits = editDistance(name.slice(0, 100), candidate);
    if (edits < smallest) [nearest, smallest] = [candidate, edits];
  }
  return nearest;
}

/**
 * Returns the edit distance of two texts: the number of insertions, deletions and replacements
 * (Levenshtein).
 */
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
