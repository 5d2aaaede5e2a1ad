const zero = 48;
const comma = 44;

/**
 * Parses ids that commas separate, in braces (the text form of a bigint array) or without. Digit by digit, because a batch
 * has thousands of ids and `split` makes a string of each.
 */
export function parseIdList(text: string): number[] {
  const isArray = text.startsWith('{');
  const end = isArray ? text.length - 1 : text.length;
  const ids: number[] = [];
  let id = 0;
  for (let i = isArray ? 1 : 0; i < end; i += 1) {
    const code = text.charCodeAt(i);
    const digit = code - zero;
    if (digit >= 0 && digit <= 9) {
      id = id * 10 + digit;
    } else if (code === comma) {
      ids.push(id);
      id = 0;
    } else
      return text
        .slice(isArray ? 1 : 0, end)
        .split(',')
        .map(Number);
  }
  if (end > (isArray ? 1 : 0)) ids.push(id);
  return ids;
}
