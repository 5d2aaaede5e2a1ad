import { z } from 'zod';
import { count, timestamp } from '../common.ts';
import { component } from '../component.ts';

const byColumn = z.record(z.string(), count);

export const secretState = component(
  'SecretState',
  z.strictObject({
    keys: z.array(
      z.strictObject({
        id: z.string().describe('The first 8 hexadecimal digits of the SHA-256 of the key.'),
        isFirst: z.boolean().describe('Whether it is the key that values are encrypted under.'),
        values: byColumn.nullable().describe('Values by column; null before the first count.'),
        mayBeRemoved: z
          .boolean()
          .describe('Whether no value is under this key, and no process encrypts with it.'),
      }),
    ),
    other: byColumn
      .nullable()
      .describe(
        'Values that no key decrypts, and sessions of older versions, whose key a rotation finds out.',
      ),
    countedAt: timestamp.nullable(),
    left: count.nullable().describe('Values that are not under the first key.'),
    rotation: z
      .strictObject({
        state: z.enum(['running', 'done']),
        requestedAt: timestamp,
        finishedAt: timestamp.nullable(),
        pass: count.describe('Passes over all values so far.'),
        expected: count.describe('Values to encrypt at the beginning.'),
        changed: count.describe('Values encrypted so far.'),
        unreadable: byColumn.describe('Values of the last pass that no key of CARILLON_SECRET decrypts.'),
      })
      .nullable(),
    mismatches: z.array(
      z.strictObject({
        kind: z.enum(['api', 'dispatcher']),
        host: z.string(),
        pid: z.int(),
        problem: z.enum(['cannotRead', 'encryptsOtherwise', 'unknown']),
      }),
    ),
  }),
);
