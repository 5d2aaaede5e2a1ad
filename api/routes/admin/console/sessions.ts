import { z } from 'zod';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import {
  consoleSession,
  currentOperator,
  endedSession,
  loginLink,
  otherPerson,
} from '../../../replies/admin/access.ts';
import { empty, keysetPageOf } from '../../../replies/common.ts';
import { json, noBody, type Reply, route, smallBody } from '../../../route.ts';
import type { OtherPerson } from '../../../services/operator/access/sessions.ts';
import { idOf, pageOf, pageQuery } from '../../../services/operator/lists/page.ts';

/** Sessions of the console (protocol/admin-api.md#sessions). */
const base = '/console/api';

const secret = z.string('expected a text').min(1, 'must not be empty').max(512, 'is too long');

const credential = z.union(
  [
    z.strictObject({ token: secret.describe('Token of the admin API.') }),
    z.strictObject({
      code: secret.describe('Code of a login link.'),
      replace: z
        .boolean('expected true or false')
        .optional()
        .describe('Replace the session of another person in this browser.'),
    }),
  ],
  'expected {"token"} or {"code"}',
);

const toReply = ({ name, role, apps, session }: Operator) =>
  json({ name, role, apps, expiresAt: session?.expiresAt ?? null, csrf: null });

/**
 * Returns the reply that asks for a confirmation, because a link would replace the session of
 * another person.
 */
function confirmation({ current, requested }: OtherPerson): Reply {
  const named = ({ name, role }: Operator) => ({ name, role });
  const error = `This browser has a session of ${current.name}; the link logs in as ${requested.name}.`;
  return json(
    { code: 409, error, current: named(current), asked: named(requested) },
    { status: 409 },
  );
}

export default [
  route({
    method: 'POST',
    path: `${base}/session`,
    operation: 'startConsoleSession',
    summary:
      'Starts a console session by a token or the code of a login link, and sets its cookie.',
    auth: 'login',
    limit: smallBody,
    isBodyRequired: true,
    body: credential,
    reply: { 200: currentOperator, 409: otherPerson },
    refusals: [],
    handle: async (call, { consoleSessions }) => {
      const {
        body,
        remoteAddress: address,
        userAgent: agent,
        requestId,
        consoleCookie: cookie,
      } = call;
      const login = await consoleSessions.login(body, { address, agent, requestId, cookie });
      if ('requested' in login) return confirmation(login);
      const header = consoleSessions.cookieHeader(login.cookie);
      return { ...toReply(login.operator), headers: { 'Set-Cookie': header } };
    },
  }),
  route({
    method: 'GET',
    path: `${base}/session`,
    operation: 'getConsoleSession',
    summary: 'Returns the caller, and when the session ends.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: noBody,
    reply: currentOperator,
    refusals: [],
    handle: ({ operator }) => toReply(operator),
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
    reply: endedSession,
    refusals: ['notFound'],
    handle: async ({ operator }, { consoleSessions, oidcLogins }) => {
      await consoleSessions.logout(operator);
      const endSessionUrl = await oidcLogins.endSessionUrl(operator);
      const reply = endSessionUrl === undefined ? {} : { endSessionUrl };
      return json(reply, { headers: { 'Set-Cookie': consoleSessions.cookieHeader('') } });
    },
  }),
  route({
    method: 'POST',
    path: `${base}/login-links`,
    operation: 'createLoginLink',
    summary:
      'Returns a link that logs in once within 15 minutes, with the permissions of the caller.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: smallBody,
    status: 201,
    reply: loginLink,
    refusals: [],
    handle: async ({ operator }, { consoleSessions }) =>
      json(await consoleSessions.createCode(operator)),
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
    handle: async ({ query }, { consoleSessions }) =>
      json(await consoleSessions.list(pageOf(query))),
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
