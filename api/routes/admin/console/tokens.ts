import { z } from 'zod';
import { callerName } from '../../../../shared/domain/admin/names.ts';
import { operatorRoles } from '../../../../shared/domain/admin/operator.ts';
import { time } from '../../../../shared/domain/client-values.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { consoleToken, createdConsoleToken } from '../../../replies/admin/access.ts';
import { empty, keysetPageOf } from '../../../replies/common.ts';
import { json, noBody, route, smallBody } from '../../../route.ts';
import { idOf, pageOf, pageQuery } from '../../../services/operator/lists/page.ts';

/** Tokens of people and machines (protocol/admin-api.md#tokens). */
const base = '/console/api/tokens';

const maxApps = 100;

const newToken = z.strictObject({
  name: callerName.describe('Person or machine that uses the token.'),
  role: z
    .enum(operatorRoles, `expected one of ${operatorRoles.join(', ')}`)
    .describe('Role of the token: see protocol/admin-api.md#roles.'),
  apps: z
    .array(z.string('expected the id of an app').min(1).max(64))
    .min(1, 'expected at least one app')
    .max(maxApps, `must be at most ${maxApps} apps`)
    .nullish()
    .describe('Ids of the apps that the token may use. All apps by default.'),
  expiresAt: time.nullish().describe('Time at which the token expires. By default it does not.'),
});

export default [
  route({
    method: 'POST',
    path: base,
    operation: 'createConsoleToken',
    summary:
      'Creates a token for a person or a machine. Only this reply contains the token itself.',
    auth: 'admin',
    role: 'owner',
    limit: smallBody,
    isBodyRequired: true,
    body: newToken,
    status: 201,
    reply: createdConsoleToken,
    refusals: ['conflict'],
    handle: async ({ operator, body }, { consoleTokens }) =>
      json(await consoleTokens.create(operator, body)),
  }),
  route({
    method: 'GET',
    path: base,
    operation: 'listConsoleTokens',
    summary: 'Lists the tokens without their secrets, newest first.',
    auth: 'admin',
    role: 'owner',
    limit: noBody,
    query: z.object(pageQuery),
    reply: keysetPageOf(consoleToken),
    refusals: [],
    handle: async ({ query }, { consoleTokens }) => json(await consoleTokens.list(pageOf(query))),
  }),
  route({
    method: 'DELETE',
    path: `${base}/:id`,
    operation: 'deleteConsoleToken',
    summary: 'Deletes a token. Its sessions end at once.',
    auth: 'admin',
    role: 'owner',
    limit: smallBody,
    reply: empty,
    refusals: ['notFound'],
    handle: async ({ params }, { consoleTokens }) => {
      const id = idOf(params.id);
      if (id === undefined) throw refuse('notFound');
      await consoleTokens.delete(id);
      return json({});
    },
  }),
];
