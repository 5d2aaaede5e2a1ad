import type { z } from 'zod';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { issueText } from '../../shared/domain/errors/issue-text.ts';
import { unstorableText } from '../../shared/domain/json.ts';
import { refusalOfFault } from '../requests/checked.ts';

/**
 * Returns the value as the schema parses it, or unchanged without a schema. Throws 107 or 111 with the name of the
 * member.
 */
export function checkSchema(schema: z.ZodType | undefined, value: unknown, where: 'query' | 'body'): unknown {
  if (!schema) return value;
  const result = schema.safeParse(value, { error: issueText });
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const path = issue?.path.join('.') ?? '';
  const refusal = result.error.issues.map(refusalOf).find((found) => found !== undefined);
  if (refusal) throw refusal;
  const text = path ? `${path}: ${issue?.message}` : `The ${where}: ${issue?.message}`;
  const own = issue && refusalOfFault(schema, { path: pathOf(issue), code: issue.code }, value);
  if (own && !own.isNamed) throw new Refusal(own.name);
  throw new Refusal(own?.name ?? (where === 'query' ? 'invalidParameter' : 'incorrectType'), { text });
}

/** Returns the path of a fault; of a union, that of the first alternative with a fault inside. */
function pathOf(issue: z.core.$ZodIssue): PropertyKey[] {
  if (issue.code !== 'invalid_union') return issue.path;
  const inside = issue.errors.flatMap(([first]) => (first && first.path.length > 0 ? [first] : []))[0];
  return inside ? [...issue.path, ...pathOf(inside)] : issue.path;
}

/** Throws 111 with the path of a text that the database cannot store, such as one with U+0000. */
export function requireStorableTexts(body: unknown): void {
  const fault = unstorableText(body, '');
  if (fault) throw new Refusal('incorrectType', { text: fault });
}

/** Returns the refusal that a schema names: `ctx.addIssue({ …, params: { refusal } })`. */
function refusalOf(issue: z.core.$ZodIssue): Refusal | undefined {
  if (issue.code !== 'custom') return undefined;
  const refusal: unknown = issue.params?.refusal;
  return refusal instanceof Refusal ? refusal : undefined;
}
