import { z } from 'zod';
import type { SavedKind } from '../../../../shared/db/tables/console.ts';
import type { Json } from '../../../../shared/domain/json.ts';
import { jsonObject, jsonValue } from '../../../../shared/domain/json-schema.ts';
import { savedAudience, savedTemplate, savedTestDevice } from '../../../replies/admin/sending.ts';
import { empty, resultsOf } from '../../../replies/common.ts';
import { ofQuery } from '../../../replies/refusals.ts';
import { json, noBody, operatorBody, type Route, route, smallBody } from '../../../route.ts';
import type { SavedName } from '../../../services/operator/sending/saved-items.ts';

/** Push templates, audiences and test devices (protocol/admin-api.md#saved-items). */
interface Kind<B> {
  kind: SavedKind;
  /** Last part of the path. */
  plural: string;
  /** Name of an item in the operations' summaries. */
  operation: string;
  noun: string;
  body: z.ZodType<B>;
  reply: z.ZodType;
  content(body: B): Json;
}

const pathOf = (plural: string): string => `/console/api/apps/:appId/${plural}`;

const nameOf = (kind: SavedKind, { params }: { params: Record<string, string> }): SavedName => ({
  appId: params.appId ?? '',
  kind,
  name: params.name ?? '',
});

/** Returns the routes that read a kind. */
function readersOf<B>({ kind, plural, operation, noun, reply }: Kind<B>): Route[] {
  const base = pathOf(plural);
  return [
    route({
      method: 'GET',
      path: base,
      operation: `list${operation}s`,
      summary: `Lists the ${noun}s of an app by name.`,
      auth: 'admin',
      role: 'viewer',
      limit: noBody,
      reply: resultsOf(reply),
      refusals: ['notFound'],
      handle: async ({ operator, params }, { savedItems }) =>
        json({ results: await savedItems.list(operator, params.appId ?? '', kind) }),
    }),
    route({
      method: 'GET',
      path: `${base}/:name`,
      operation: `get${operation}`,
      summary: `Returns a ${noun}.`,
      auth: 'admin',
      role: 'viewer',
      limit: noBody,
      reply,
      refusals: ['notFound'],
      handle: async (call, { savedItems }) =>
        json(await savedItems.get(call.operator, nameOf(kind, call))),
    }),
  ];
}

/** Returns the routes that change a kind. */
function writersOf<B>({ kind, plural, operation, noun, body, reply, content }: Kind<B>): Route[] {
  const base = pathOf(plural);
  return [
    route({
      method: 'PUT',
      path: `${base}/:name`,
      operation: `put${operation}`,
      summary: `Creates or replaces a ${noun}.`,
      auth: 'admin',
      role: 'sender',
      limit: operatorBody,
      body,
      reply,
      refusals: ['notFound', 'tooLarge', 'thresholdExceeded', ...ofQuery],
      handle: async (call, { savedItems }) =>
        json(await savedItems.put(call.operator, nameOf(kind, call), content(call.body))),
    }),
    route({
      method: 'DELETE',
      path: `${base}/:name`,
      operation: `delete${operation}`,
      summary: `Deletes a ${noun}.`,
      auth: 'admin',
      role: 'sender',
      limit: smallBody,
      reply: empty,
      refusals: ['notFound'],
      handle: async (call, { savedItems }) => {
        await savedItems.delete(nameOf(kind, call));
        return json({});
      },
    }),
  ];
}

const routesOf = <B>(kind: Kind<B>): Route[] => [...readersOf(kind), ...writersOf(kind)];

export default [
  ...routesOf({
    kind: 'push-template',
    plural: 'push-templates',
    operation: 'PushTemplate',
    noun: 'push template',
    body: z.strictObject({
      body: jsonObject.describe(
        'Body of a push: see protocol/push.md#push-call. It is checked when it is sent.',
      ),
    }),
    reply: savedTemplate,
    content: ({ body }) => body,
  }),
  ...routesOf({
    kind: 'audience',
    plural: 'audiences',
    operation: 'Audience',
    noun: 'saved audience',
    body: z.strictObject({
      where: z
        .union([jsonObject, z.array(jsonValue)])
        .meta({ anyOf: [{ type: 'object' }, { type: 'array', items: { type: 'object' } }] })
        .describe('Condition on installations.'),
    }),
    reply: savedAudience,
    content: ({ where }) => where,
  }),
  ...routesOf({
    kind: 'test-device',
    plural: 'test-devices',
    operation: 'TestDevice',
    noun: 'test device',
    body: z.strictObject({
      installation: z
        .string('expected one id')
        .min(1)
        .max(512)
        .describe('objectId, installationId or device token. The objectId is stored.'),
    }),
    reply: savedTestDevice,
    content: ({ installation }) => installation,
  }),
];
