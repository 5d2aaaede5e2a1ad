import { z } from 'zod';
import { rotationStates } from '../../../shared/domain/apps/canary.ts';
import { component, count, timestamp } from '../common.ts';

const byColumn = z.record(z.string(), count);

export const secretState = component(
  'SecretState',
  z.strictObject({
    keys: z
      .array(
        z.strictObject({
          id: z.string().describe('The first 8 hexadecimal digits of the SHA-256 of the key.'),
          isFirst: z.boolean().describe('Whether values are encrypted with this key.'),
          values: byColumn
            .nullable()
            .describe('Number of values by column. Null before the first count.'),
          mayBeRemoved: z
            .boolean()
            .describe(
              'Whether no value is encrypted with this key and no process encrypts with it.',
            ),
        }),
      )
      .describe('Keys of CARILLON_SECRET.'),
    other: byColumn
      .nullable()
      .describe(
        'Values that no key decrypts, and sessions of older versions, whose key a rotation ' +
          'will determine.',
      ),
    countedAt: timestamp.nullable().describe('Time of the count. Null before the first count.'),
    left: count.nullable().describe('Values that are not encrypted with the first key.'),
    rotation: z
      .strictObject({
        state: z.enum(['running', 'done']).describe('State of the rotation.'),
        requestedAt: timestamp.describe('Time of the request.'),
        finishedAt: timestamp.nullable().describe('Time of the end. Null before.'),
        pass: count.describe('Number of passes over all values so far.'),
        expected: count.describe('Number of values to encrypt at the start.'),
        changed: count.describe('Values encrypted so far.'),
        unreadable: byColumn.describe(
          'Values of the last pass that no key of CARILLON_SECRET decrypts.',
        ),
      })
      .nullable()
      .describe('The last rotation. Null without one.'),
    mismatches: z
      .array(
        z.strictObject({
          kind: z.enum(['api', 'dispatcher']).describe('Kind of the process.'),
          host: z.string().describe('Name of the machine.'),
          pid: z.int().describe('Id of the process on its machine.'),
          problem: z
            .enum(['cannotRead', 'encryptsOtherwise', 'unknown'])
            .describe('What is wrong with its keys.'),
        }),
      )
      .describe('Processes with other keys.'),
  }),
);

export const profileRotation = component(
  'ProfileRotation',
  z
    .strictObject({
      connector: z.string().describe('Connector of the gateway.'),
      name: z.string().describe('Name of the profile.'),
      state: z.enum(rotationStates).describe('State of the rotation.'),
      stagedAt: timestamp.describe('Time at which the candidate was staged.'),
      changedAt: timestamp.describe('Time at which it reached its state.'),
      reason: z
        .string()
        .nullable()
        .describe(
          'Why it was rolled back: `refused`, `worse`, `noTraffic`, `operator`, `replaced`; ' +
            'or why the check failed.',
        ),
      detail: z.string().nullable().describe('Message of the check or the gateway.'),
      mayRollBack: z.boolean().describe('Whether a rollback is possible.'),
      batches: count.describe('Batches that were sent with the candidate.'),
      batchesSeen: count.describe('Batches of the profile since the canary began.'),
      asked: count.describe(
        'Recipients in these batches for which requests with the candidate were sent.',
      ),
      accepted: count.describe('Recipients that the gateway accepted.'),
      refused: count.describe(
        'Recipients that the gateway refused because of authentication or configuration.',
      ),
      worse: count.describe(
        'Recipients that were not accepted with the candidate and then accepted with the ' +
          'current version.',
      ),
      enough: count.describe('Accepted recipients after which the candidate is promoted.'),
    })
    .describe('Last rotation of the credentials of a profile. Contains no credentials.'),
);
