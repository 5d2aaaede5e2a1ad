import { z } from 'zod';
import { loginMethods } from '../../../replies/admin/access.ts';
import { json, noBody, type Reply, route } from '../../../route.ts';
import type { Browser, Step } from '../../../services/operator/access/oidc-logins.ts';
import { pageHeaders } from '../../../services/server/html-page.ts';

/** Login to the console by OpenID Connect (operate/single-sign-on.md). */
const base = '/console/oidc';

const page = { contentType: 'text/html; charset=utf-8' };
const steps = { 302: page, 400: page, 403: page, 404: page, 429: page, 503: page };

function replyOf(step: Step): Reply {
  const headers = { ...pageHeaders, 'Set-Cookie': step.cookies };
  if ('location' in step)
    return {
      status: 302,
      body: '',
      type: page.contentType,
      headers: { ...headers, Location: step.location },
    };
  return { status: step.page.status, body: step.page.html, type: page.contentType, headers };
}

const browserOf = (call: {
  remoteAddress: string;
  userAgent: string;
  requestId: string;
  language: 'en' | 'zh';
  raw?: { headers: Record<string, string> };
}): Browser => ({
  address: call.remoteAddress,
  agent: call.userAgent,
  requestId: call.requestId,
  language: call.language,
  cookies: call.raw?.headers.cookie,
});

/** Members of the provider's answer (RFC 6749 4.1.2, RFC 9207). Others are passed on too. */
const answer = z.looseObject({
  code: z.string().optional().describe('Code of the provider.'),
  state: z.string().optional().describe('State that the login began with.'),
  iss: z.string().optional().describe('Issuer of the code.'),
  error: z.string().optional().describe('Why the provider refused the login.'),
});

export default [
  route({
    method: 'GET',
    path: '/console/api/login-methods',
    operation: 'getLoginMethods',
    summary: 'Returns how people may log in to the console. Needs no credentials.',
    auth: 'none',
    limit: noBody,
    reply: loginMethods,
    refusals: [],
    handle: (_call, { oidcLogins }) => json({ token: true, oidc: oidcLogins.host }),
  }),
  route({
    method: 'GET',
    path: `${base}/start`,
    operation: 'startOidcLogin',
    summary: 'Sends the browser to the provider of OpenID Connect.',
    auth: 'none',
    writes: true,
    hasRawBody: true,
    limit: noBody,
    status: 302,
    reply: steps,
    refusals: ['methodNotAllowed'],
    handle: async (call, { oidcLogins }) => replyOf(await oidcLogins.start(browserOf(call))),
  }),
  route({
    method: 'GET',
    path: `${base}/callback`,
    operation: 'completeOidcLogin',
    summary: 'Takes the answer of the provider of OpenID Connect, and starts a session.',
    auth: 'none',
    writes: true,
    hasRawBody: true,
    limit: noBody,
    query: answer,
    status: 302,
    reply: steps,
    refusals: ['methodNotAllowed'],
    handle: async (call, { oidcLogins }) => {
      const query = new URLSearchParams();
      for (const [name, value] of Object.entries(call.query))
        if (typeof value === 'string') query.set(name, value);
      return replyOf(await oidcLogins.complete(query.toString(), browserOf(call)));
    },
  }),
];
