import { z } from 'zod';
import { rotationStates } from '../../../shared/domain/apps/canary.ts';
import { component, count, timestamp } from '../common.ts';

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
        unreadable: byColumn.describe(
          'Values of the last pass that no key of CARILLON_SECRET decrypts.',
        ),
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

export const profileRotation = component(
  'ProfileRotation',
  z
    .strictObject({
      connector: z.string(),
      name: z.string(),
      state: z.enum(rotationStates),
      stagedAt: timestamp,
      changedAt: timestamp.describe('When it came to its state.'),
      reason: z
        .string()
        .nullable()
        .describe(
          'Why it was rolled back: `refused`, `worse`, `noTraffic`, `operator`, `replaced`; or why the check failed.',
        ),
      detail: z.string().nullable().describe('What the check or the gateway said.'),
      mayRollBack: z.boolean().describe('Whether a rollback has something to undo.'),
      batches: count.describe('Batches that were sent with the candidate.'),
      batchesSeen: count.describe('Batches of the profile since the canary began.'),
      asked: count.describe(
        'Recipients of those batches that the gateway was asked for with the candidate.',
      ),
      accepted: count.describe('Recipients that it accepted.'),
      refused: count.describe('Recipients that it refused for authentication or configuration.'),
      worse: count.describe(
        'Recipients without an acceptance that the current version got right after.',
      ),
      enough: count.describe('Accepted recipients after which the candidate is promoted.'),
    })
    .describe('Last rotation of the credentials of a profile; holds no credentials.'),
);
