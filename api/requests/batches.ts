import { z } from 'zod';
import { jsonObject } from '../../shared/domain/json-schema.ts';
import { maxItems } from '../services/batch/calls.ts';
import { partParsedByService, refusedAs } from './checked.ts';

/**
 * Path of a call in a batch (protocol/objects.md#batches). If a call is invalid, only the reply to
 * this call is an error.
 */
const path = z.string().max(16_384).describe('Path with `/1.1/`, and its query if it has one.');
const params = jsonObject
  .nullish()
  .describe('Further query parameters. Values other than texts are sent as JSON.');

const call = z.object({
  method: z.enum(['GET', 'POST', 'PUT', 'DELETE']).optional().describe('`GET` by default.'),
  path,
  params,
  body: jsonObject.optional().describe('Body of the call.'),
});

/** Returns the schema of the list of requests. */
const requestsOf = (item: z.ZodType) =>
  refusedAs(z.array(partParsedByService(item)).max(maxItems), {
    invalid: 'malformedJson',
    tooBig: 'tooLarge',
    isNamed: true,
  });

/** Body of a batch of calls. */
export const batchBody = z.object({
  requests: requestsOf(call).describe('Calls. Replies have the same order.'),
});

const child = z.object({
  className: z.string().describe('Class of the object.'),
  cid: z.string().describe('`__internalId` of the object.'),
  key: z.string().describe('Member that points to the object.'),
});

const save = call.extend({
  method: z.enum(['POST', 'PUT']).describe('`POST` creates the object, `PUT` changes it.'),
  body: z
    .looseObject({
      __internalId: z
        .string()
        .optional()
        .describe('Id of the object, or an id that the client made.'),
      __children: z
        .array(child)
        .optional()
        .describe('Members that point to objects of the same batch.'),
    })
    .nullish()
    .describe('Members of the object.'),
});

/** Body of a batch of objects to save. */
export const batchSaveBody = z.object({
  requests: requestsOf(save).describe('Saves. Children are saved first.'),
});
