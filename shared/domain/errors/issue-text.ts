import type { z } from 'zod';

/** JSON names of zod types. */
const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'an array',
  null: 'null',
  date: 'a date',
};

/**
 * Returns the text of a schema issue for clients and operators. The default texts of zod use its
 * own type names and call the value "input". Passed to `safeParse` as `error`.
 */
export const issueText: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'is missing';
      return `must be ${typeNames[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be ${listOf(issue.values)}`;
    case 'unrecognized_keys':
      return `there is no member ${issue.keys.slice(0, 5).map(safeKey).join(', ')}`;
    case 'too_big':
      return `must ${isSized(issue.origin) ? 'have' : 'be'} at most ${issue.maximum}${unitOf(issue.origin)}`;
    case 'too_small':
      return `must ${isSized(issue.origin) ? 'have' : 'be'} at least ${issue.minimum}${unitOf(issue.origin)}`;
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'invalid_format':
      return `must be a ${formatNames[issue.format] ?? 'text of the expected form'}`;
    case 'invalid_union':
      return unionText(issue);
    default:
      return 'is not what is expected here';
  }
};

/**
 * Returns the valid values of the member that selects the alternative, or the issue of the nearest
 * alternative, or the valid types.
 */
function unionText(issue: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidUnion>): string {
  const options: unknown = 'options' in issue ? issue.options : undefined;
  if (Array.isArray(options)) return `must be ${listOf(options)}`;
  const alternatives = issue.errors.flatMap(([first, ...others]) =>
    first ? [{ first, others }] : [],
  );
  const inside = alternatives
    .filter(({ first }) => first.path.length > 0)
    .toSorted((a, b) => a.others.length - b.others.length)[0]?.first;
  if (inside) return `${inside.path.join('.')}: ${inside.message}`;
  const texts = [
    ...new Set(alternatives.map(({ first }) => first.message.replace(/^(must be|expected) /, ''))),
  ];
  return texts.length === 0 ? 'is not what is expected here' : `must be ${texts.join(' or ')}`;
}

const formatNames: Readonly<Record<string, string>> = {
  url: 'URL',
  email: 'mail address',
  datetime: 'time in ISO 8601',
  date: 'day such as 2027-01-31',
};

const isSized = (origin: string): boolean =>
  origin === 'string' || origin === 'array' || origin === 'object';

function unitOf(origin: string): string {
  if (origin === 'string') return ' characters';
  if (origin === 'array') return ' elements';
  return origin === 'object' ? ' members' : '';
}

function listOf(values: readonly unknown[]): string {
  const texts = values.map(String);
  return texts.length === 1 ? String(texts[0]) : `one of ${texts.join(', ')}`;
}

/** Returns a name only if it looks like a name. Otherwise it may be a pasted secret. */
const safeKey = (key: string): string => (/^[A-Za-z_-]{1,32}$/.test(key) ? key : '(no name)');
