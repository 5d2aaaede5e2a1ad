import { z } from 'zod';
import { flagQuery } from '../../../../shared/domain/client-values.ts';
import { deviceDetail, devicePush, searchHit } from '../../../replies/admin/objects.ts';
import { keysetPageOf, resultsOf } from '../../../replies/common.ts';
import { installation } from '../../../replies/objects.ts';
import { ofQuery } from '../../../replies/refusals.ts';
import { json, noBody, route } from '../../../route.ts';
import { maxCountFor } from '../../../services/operator/devices/devices.ts';
import { pageOf, pageQuery } from '../../../services/operator/lists/page.ts';

/** Path of the devices of an app (protocol/admin-api.md#devices). */
const base = '/console/api/apps/:appId/installations';

const listQuery = z.object({
  ...pageQuery,
  q: z
    .string('expected one id')
    .min(1)
    .max(4096)
    .refine((text) => !text.includes('\0'), 'must not hold NUL')
    .optional()
    .describe('An objectId, installationId, device token or registration id.'),
  where: z.string('expected one condition').max(10_000).optional().describe('Condition as JSON.'),
  count: z
    .union([z.literal('all'), flagQuery], 'takes true, false, 1, 0 or all')
    .describe('Counts the matches: `1` up to 10,000, `all` up to 100,000.'),
});

const maxPushes = 20;
const pushesQuery = z.object({
  limit: z.coerce
    .number('expected a number')
    .int()
    .min(1)
    .max(maxPushes)
    .default(10)
    .describe('Maximum number of results.'),
});

const searchQuery = z.object({
  q: z
    .string('expected one text')
    .min(1, 'must not be empty')
    .max(4096)
    .describe('Text to search for: an id, a token or a name.'),
  app: z.string('expected one app').max(64).optional().describe('Only this app.'),
});

export default [
  route({
    method: 'GET',
    path: base,
    operation: 'listAppInstallations',
    summary:
      'Lists the installations of an app by an id or a condition, newest first. Below the ' +
      'role operator, tokens are shortened.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: listQuery,
    reply: keysetPageOf(installation),
    refusals: ['notFound', ...ofQuery],
    handle: async ({ operator, params, query }, { devices }) => {
      const request = {
        ...pageOf(query),
        q: query.q,
        where: query.where,
        maxCount: maxCountFor(query.count),
      };
      return json(await devices.list(operator, params.appId ?? '', request));
    },
  }),
  route({
    method: 'GET',
    path: `${base}/:id`,
    operation: 'getAppInstallation',
    summary: 'Returns an installation with its route, its session and its waiting messages.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    reply: deviceDetail,
    refusals: ['notFound'],
    handle: async ({ operator, params }, { devices }) =>
      json(await devices.get(operator, params.appId ?? '', params.id ?? '')),
  }),
  route({
    method: 'GET',
    path: `${base}/:id/pushes`,
    operation: 'listInstallationPushes',
    summary: 'Explains the newest pushes of the app for one installation.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: pushesQuery,
    reply: resultsOf(devicePush),
    refusals: ['notFound', 'objectNotFound'],
    handle: async ({ params, query }, { devicePushes }) =>
      json(await devicePushes.list(params.appId ?? '', params.id ?? '', query.limit)),
  }),
  route({
    method: 'GET',
    path: '/console/api/search',
    operation: 'search',
    summary:
      'Finds apps, pushes, installations and users by an id, a token, a name, an address or a ' +
      'number.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: noBody,
    query: searchQuery,
    reply: resultsOf(searchHit),
    refusals: [],
    handle: async ({ operator, query }, services) =>
      json({ results: await services.search.search(operator, query.q, query.app) }),
  }),
];
