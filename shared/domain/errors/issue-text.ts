import type { z } from 'zod';

/** What JSON calls the types that a schema expects. */
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
 * Words what is wrong with a value that a client or operator sent, where the schema has no words of its own: the
 * defaults of the schema library name its types and call the value "input". Pass it to `safeParse` as `error`.
 */
export const issueText: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'is missing';
      return `must be ${typeNames[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be ${listOf(issue.values)}`;
    case 'unrecognized_keys':
      return `there is no member ${issue.keys.slice(0, 5).map(shownKey).join(', ')}`;
    case 'too_big':
      return `must ${isSized(issue.origin) ? 'have' : 'be'} at most ${issue.maximum}${unitOf(issue.origin)}`;
    case 'too_small':
      return `must ${isSized(issue.origin) ? 'have' : 'be'} at least ${issue.minimum}${unitOf(issue.origin)}`;
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'invalid_format':
      return `must be a ${formatNames[issue.format] ?? 'text of the expected form'}`;
    default:
      return 'is not what is expected here';
  }
};

const formatNames: Readonly<Record<string, string>> = {
  url: 'URL',
  email: 'mail address',
  datetime: 'time in ISO 8601',
  date: 'day such as 2027-01-31',
};

const isSized = (origin: string): boolean => origin === 'string' || origin === 'array' || origin === 'object';

function unitOf(origin: string): string {
  if (origin === 'string') return ' characters';
  if (origin === 'array') return ' elements';
  return origin === 'object' ? ' members' : '';
}

function listOf(values: readonly unknown[]): string {
  const shown = values.map(String);
  return shown.length === 1 ? String(shown[0]) : `one of ${shown.join(', ')}`;
}

/** A secret may have been pasted as a name: only what looks like a name is shown. */
const shownKey = (key: string): string => (/^[A-Za-z_-]{1,32}$/.test(key) ? key : '(no name)');
