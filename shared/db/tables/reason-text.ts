/** Returns SQL for the text of a stored reason (`shared/domain/reasons.ts`), by which callers filter and count. */
export const reasonTextSql = (column = 'reason'): string => `split_part(${column}, E'\\t', 1)`;
