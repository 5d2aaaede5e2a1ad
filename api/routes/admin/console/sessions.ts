import { z } from 'zod';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { consoleSession, currentOperator, loginLink } from '../../../replies/admin/access.ts';
import { empty, keysetPageOf } from '../../../replies/common.ts';
import { json, noBody, route, smallBody } from '../../../route.ts';
import { idOf, pageOf, pageQuery } from '../../../services/operator/lists/page-query.ts';

/** Sessions of the console (protocol/admin-api.md#sessions). */
const base = '/console/api';

const secret = z.string('expected a text').min(1, 'must not be empty').max(512, 'is too long');

const credential = z.union(
  [z.strictObject({ token: secret }), z.strictObject({ code: secret })],
  'expected {"token"} or {"code"}',
);

const shown = ({ name, role, apps, session }: Operator) =>
  json({ name, role, apps, expiresAt: session?.expiresAt ?? null, csrf: null });

export default [
  route({
    method: 'POST',
    path: `${base}/session`,
    operation: 'startConsoleSession',
    summary: 'Starts a session of the console and sets its cookie, for a token or the code of a login link.',
    auth: 'login',
    limit: smallBody,
    isBodyRequired: true,
    body: credential,
    reply: currentOperator,
    refusals: [],
    handle: async ({ body, remoteAddress, userAgent, requestId }, { consoleSessions }) => {
      const client = { address: remoteAddress, agent: userAgent, requestId };
      const { operator, cookie } = await consoleSessions.login(body, client);
      return { ...shown(operator), headers: { 'Set-Cookie': consoleSessions.cookieHeader(cookie) } };
    },
  }),
  route({
    method: 'GET',
    path: `${base}/session`,
    operation: 'getConsoleSession',
    summary: 'Returns who calls, and when the session ends.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: noBody,
    reply: currentOperator,
    refusals: [],
    handle: ({ operator }) => shown(operator),
  }),
  route({
    method: 'DELETE',
    path: `${base}/session`,
    operation: 'endConsoleSession',
    summary: 'Ends the session of the call.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: smallBody,
    reply: empty,
    refusals: ['notFound'],
    handle: async ({ operator }, { consoleSessions }) => {
      await consoleSessions.logout(operator);
      return json({}, { headers: { 'Set-Cookie': consoleSessions.cookieHeader('') } });
    },
  }),
  route({
    method: 'POST',
    path: `${base}/login-links`,
    operation: 'createLoginLink',
    summary: 'Returns a link that logs in once within 15 minutes, with the permissions of the caller.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: smallBody,
    status: 201,
    reply: loginLink,
    refusals: [],
    handle: async ({ operator }, { consoleSessions }) => json(await consoleSessions.createCode(operator)),
  }),
  route({
    method: 'GET',
    path: `${base}/sessions`,
    operation: 'listConsoleSessions',
    summary: 'Lists the sessions of the console, newest first.',
    auth: 'admin',
    role: 'owner',
    limit: noBody,
    query: z.object(pageQuery),
    reply: keysetPageOf(consoleSession),
    refusals: [],
    handle: async ({ query }, { consoleSessions }) => json(await consoleSessions.list(pageOf(query))),
  }),
  route({
    method: 'DELETE',
    path: `${base}/sessions/:id`,
    operation: 'deleteConsoleSession',
    summary: 'Ends a session of the console.',
    auth: 'admin',
    role: 'owner',
    limit: smallBody,
    reply: empty,
    refusals: ['notFound'],
    handle: async ({ params }, { consoleSessions }) => {
      const id = idOf(params.id);
      if (id === undefined) throw refuse('notFound');
      await consoleSessions.delete(id);
      return json({});
    },
  }),
];
