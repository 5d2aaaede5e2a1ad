import { z } from 'zod';
import { flagQuery } from '../../../../shared/domain/plain-values.ts';
import { time } from '../../../../shared/domain/times.ts';
import type { PageRequest } from './page.ts';

const maxLimit = 200;
const defaultLimit = 50;

/** Query members of every list by keyset (protocol/admin-api.md#lists). */
export const pageQuery = {
  limit: z.coerce
    .number('expected a number')
    .int('expected a whole number')
    .min(1, 'must be at least 1')
    .max(maxLimit, `must be at most ${maxLimit}`)
    .default(defaultLimit)
    .describe('Largest number of results.'),
  cursor: z
    .string('expected one cursor')
    .regex(/^\d{1,15}$/, 'expected the `next` of a page before')
    .optional()
    .describe('`next` of the page before.'),
};

/** `count=1` counts the matches. */
export const countQuery = flagQuery.describe('`1` counts the matches, up to 10,000.');

/** Time of a query. */
export const timeQuery = time.optional();

/** Returns the page that a query asks for. */
export const pageOf = ({ limit, cursor }: { limit: number; cursor?: string | undefined }): PageRequest => ({
  limit,
  before: cursor === undefined ? null : Number(cursor),
});

/** Parses an id of a path; undefined for another text, which is the id of nothing. */
export const idOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
