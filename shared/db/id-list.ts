const zero = 48;
const comma = 44;

/**
 * Parses ids that commas separate, in braces (the text form of a bigint array) or without. Digit by digit, because a batch
 * has thousands of ids and `split` makes a string of each. The end counts as a comma, so that nothing follows the loop: V8
 * compiles a long loop while it runs, and would discard the code at statements behind it that have never run.
 */
export function parseIdList(text: string): number[] {
  const isArray = text.startsWith('{');
  const start = isArray ? 1 : 0;
  const end = isArray ? text.length - 1 : text.length;
  const ids: number[] = [];
  if (start === end) return ids;
  let id = 0;
  for (let i = start; i <= end; i += 1) {
    const code = i === end ? comma : text.charCodeAt(i);
    const digit = code - zero;
    if (digit >= 0 && digit <= 9) {
      id = id * 10 + digit;
    } else if (code === comma) {
      ids.push(id);
      id = 0;
    } else return text.slice(start, end).split(',').map(Number);
  }
  return ids;
}
