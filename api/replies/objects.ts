import { z } from 'zod';
import { count, errorReply } from './common.ts';
import { component } from './component.ts';
import { installationPart } from './installations.ts';
import { rolePart } from './roles.ts';
import { userPart } from './users.ts';

const found = <C extends string, S extends z.ZodType>(className: C, item: S) =>
  z.strictObject({ className: z.literal(className), results: z.array(item), count: count.optional() });

/** Reply to a CQL statement. */
export const cqlResult = component(
  'CqlResult',
  z.discriminatedUnion('className', [
    found('_Installation', installationPart),
    found('_User', userPart),
    found('_Role', rolePart),
  ]),
);

/** Object of any class that can be scanned. */
export const scannedObject = z.union([installationPart, userPart, rolePart]);

const refusedCall = z.strictObject({ error: errorReply });

export const batchReply = component(
  'BatchReply',
  z
    .array(z.union([z.strictObject({ success: z.unknown().describe('Reply of the call.') }), refusedCall]))
    .describe('Replies in the order of the calls.'),
);

export const batchSaveReply = component(
  'BatchSaveReply',
  z
    .record(z.string(), z.union([refusedCall, z.record(z.string(), z.unknown())]))
    .describe('Replies by `__internalId`, object id or place in the batch.'),
);

/** Reply of a function host, as it is. */
export const functionResult = component('FunctionResult', z.unknown().describe('JSON of the function host.'));
