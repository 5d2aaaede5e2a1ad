import type { ClassTable, Selection } from '../../../../shared/db/tables/selection.ts';

/** Limits what `countRows` counts: a subquery in place of the table would need a statement of its own. */
export const cappedRows = (table: ClassTable, selection: Selection, most: number): Selection => ({
  ...selection,
  condition: `id IN (SELECT id FROM ${table} WHERE app_id = $1 AND ${selection.condition} LIMIT ${most + 1})`,
});

/** Returns the number of matches for a reply. */
export const countOfRows = (count: number, most: number): { count: number; countIsLeast?: true } =>
  count > most ? { count: most, countIsLeast: true } : { count };
