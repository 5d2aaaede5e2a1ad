import { z } from 'zod';
import { component } from './component.ts';

/** Parts of replies that several kinds of objects share. */

/** Time as ISO 8601 in UTC with milliseconds. */
export const timestamp = z.iso.datetime({ precision: 3 });

/** Number of things. */
export const count = z.int().min(0);

export const empty = component('Empty', z.strictObject({}).describe('An object without members.'));

/** Body of every refusal. */
export const errorReply = component(
  'Error',
  z.strictObject({ code: z.int(), error: z.string().describe('Sentence for people.') }),
);

export const acl = component(
  'Acl',
  z
    .record(
      z.string(),
      z.strictObject({ read: z.literal(true).optional(), write: z.literal(true).optional() }),
    )
    .describe('Permissions by user id, `role:<name>`, or `*` for every caller.'),
);

/** List of objects; `count` is present with `count=1`. */
export const listOf = <S extends z.ZodType>(item: S) =>
  z.strictObject({ results: z.array(item), count: count.optional() });

/** List of the admin API. */
export const resultsOf = <S extends z.ZodType>(item: S) => z.strictObject({ results: z.array(item) });
