/**
 * Fictitious vendor, written as docs/develop/connectors.md describes, to test the kit: ten devices
 * per request, an access token, and every kind of result.
 */
import { z } from 'zod';
import type { Connector, SenderContext } from '../../../connectors/contract/connector.ts';
import {
  authEndpoint,
  common,
  inspectTrust,
  secretText,
} from '../../../connectors/contract/credentials.ts';
import { AccessTokens, tokenFromReply } from '../../../connectors/kit/access-token.ts';
import { androidContent, bodySizeError, titleOf } from '../../../connectors/kit/android.ts';
import {
  type ExchangeResult,
  gatewayCall,
  sendMulticast,
  unreadable,
} from '../../../connectors/kit/multicast.ts';
import { receiptUrl } from '../../../connectors/kit/receipts.ts';
import {
  attemptResult,
  type ResponseRule,
  responseTable,
  unrenderable,
} from '../../../connectors/kit/response-rules.ts';
import { parseObject } from '../../../connectors/kit/values.ts';
import {
  bearerOf,
  type SandboxGateway,
  startGateway,
  TokenIssuer,
} from '../../../ops/sandbox/http/server.ts';
import { isJsonObject } from '../../../shared/domain/json.ts';
import {
  createHttpClient,
  defaultHttpTiming,
  formPost,
  type HttpTiming,
  jsonPost,
} from '../../../shared/http/client.ts';

const rows: ResponseRule[] = [
  { code: '0', reason: 'ok', reaction: 'sent' },
  { code: '1', reason: 'busy', reaction: 'retry', afterMs: 2500 },
  { code: '2', reason: 'too_fast', reaction: 'throttle' },
  {
    code: '3',
    reason: 'token_expired',
    reaction: 'renew_token',
    hint: 'credentialsUnfit',
  },
  { code: '4', reason: 'bad_app', reaction: 'profile_error', hint: 'credentialsUnfit' },
  { code: '5', reason: 'day_quota', reaction: 'cap' },
  { code: '6', reason: 'no_valid_target', reaction: 'ambiguous', singleTarget: 'dead_token' },
  { code: '7', reason: 'bad_text', reaction: 'fail_push' },
  { code: '8', reason: 'unregistered', reaction: 'dead_token' },
  { code: '9', reason: 'folded', reaction: 'drop' },
];
const rowOf = responseTable(rows);

const credentials = z.strictObject({
  appId: secretText('appId'),
  secret: secretText('secret'),
  ...common,
  ...authEndpoint,
});
const limits = { recipientsPerRequest: 10, bodyBytes: 600, titleChars: 10, alertChars: 20 };
const can = { passThrough: false, badge: false, collapse: true };

export function exampleVendor(
  timing: HttpTiming = defaultHttpTiming,
): Connector<z.infer<typeof credentials>, string> {
  const render: Connector<unknown, string>['render'] = (message) => {
    const content = androidContent(message, { connector: 'vendor_e', can, limits });
    if (!content.ok) return content;
    const { alert, custom, vendor } = content.payload;
    const payload = JSON.stringify({
      title: titleOf(content.payload, 10),
      alert,
      custom,
      ...vendor,
    });
    return bodySizeError('vendor_e', Buffer.byteLength(payload), limits) ?? { ok: true, payload };
  };
  return {
    id: 'vendor_e',
    can,
    limits,
    tokenField: 'registrationId',
    credentials,
    render,
    inspect: ({ ca }, nowMs) => ({ kind: 'secret', ...inspectTrust(ca, nowMs) }),
    open: (profile, context) => {
      const {
        endpoint = 'https://example.invalid',
        authEndpoint: authBase = endpoint,
        ca,
      } = profile;
      const { clock } = context;
      const client = createHttpClient({ baseUrl: endpoint, ca, timing, clock });
      const authClient = createHttpClient({ baseUrl: authBase, ca, timing, clock });
      const tokens = new AccessTokens({
        store: context.tokens,
        clock,
        credential: `${authBase} ${profile.appId} ${profile.secret}`,
        fetch: async () =>
          tokenFromReply(
            await authClient.request(
              formPost('/token', { id: profile.appId, secret: profile.secret }),
            ),
            (body) => {
              const { token, seconds } = body;
              return typeof token === 'string' && typeof seconds === 'number'
                ? { value: token, lifetimeMs: seconds * 1000 }
                : null;
            },
          ),
      });
      return {
        async send(request) {
          const rendering = render(request.message, 'android');
          if (!rendering.ok) {
            for (const { index } of request.recipients)
              request.report(index, unrenderable(rendering));
            return;
          }
          const callback = receiptUrl(context, profile);
          await sendMulticast(
            {
              clock,
              recipientsPerRequest: limits.recipientsPerRequest,
              tokens,
              quota: { dayQuota: context.quota, messageClass: 'public' },
              isRepeatHidden: true,
              exchange: (to, token) =>
                exchange(
                  context,
                  client.request(
                    jsonPost(
                      '/send',
                      { to, message: rendering.payload, callback },
                      { authorization: `Bearer ${token}` },
                    ),
                  ),
                ),
            },
            request,
          );
        },
        close: async () => {
          await Promise.all([client.close(), authClient.close()]);
        },
      };
    },
  };
}

async function exchange(
  context: SenderContext,
  requested: ReturnType<ReturnType<typeof createHttpClient>['request']>,
): Promise<ExchangeResult> {
  const reply = await requested;
  const parsed = reply.kind === 'response' ? readingOf(reply) : reply;
  context.onCall(gatewayCall(parsed, reply.seconds));
  return parsed;
}

function readingOf(reply: Parameters<typeof unreadable>[0]): ExchangeResult {
  const body = parseObject(reply.body);
  if (!body || typeof body.code !== 'number') return unreadable(reply);
  const targets = new Map<string, ResponseRule>();
  if (isJsonObject(body.bad))
    for (const [deviceToken, code] of Object.entries(body.bad))
      targets.set(deviceToken, rowOf(String(code)));
  const messageId = typeof body.id === 'string' ? body.id : undefined;
  return {
    kind: 'parsed',
    status: reply.status,
    rule: rowOf(body.code),
    targets,
    messageId,
    retryAfterMs: reply.retryAfterMs,
  };
}

export interface ExampleGateway extends SandboxGateway {
  tokenIssuer: TokenIssuer;
  /** Codes of single devices within a successful response. */
  targetCodes: Map<string, number>;
  /** Devices for which the whole request is refused with code 6. */
  ambiguousTokens: Set<string>;
}

export async function startExampleGateway(): Promise<ExampleGateway> {
  const targetCodes = new Map<string, number>();
  const ambiguousTokens = new Set<string>();
  let tokenIssuer: TokenIssuer | undefined;
  let ids = 0;
  const gateway = await startGateway({}, ({ deadTokens, nowMs }) => {
    const created = new TokenIssuer(nowMs);
    tokenIssuer = created;
    return {
      targetsOf: ({ path, body }) =>
        path === '/token' ? { tokens: [], isTokenCall: true } : { tokens: targetsIn(body) },
      handle: ({ path, headers, body }) => {
        if (path === '/token') {
          const form = new URLSearchParams(body.toString());
          if (form.get('secret') !== 'right')
            return { status: 401, body: { error: 'invalid_client' } };
          const { value, expiresIn } = created.issue();
          return { status: 200, body: { token: value, seconds: expiresIn } };
        }
        if (created.check(bearerOf(headers.authorization)) !== 'valid')
          return { status: 200, body: { code: 3 } };
        const to = targetsIn(body);
        if (to.length === 0 || to.length > 10)
          return { status: 400, violation: `${to.length} devices in a request` };
        if (new Set(to).size < to.length)
          return { status: 200, body: { code: 0 }, violation: 'a device twice' };
        if (to.some((token) => ambiguousTokens.has(token)))
          return { status: 200, body: { code: 6 } };
        const bad = new Map(to.filter((token) => deadTokens.has(token)).map((token) => [token, 8]));
        for (const token of to)
          if (targetCodes.has(token)) bad.set(token, targetCodes.get(token) ?? 0);
        ids += 1;
        const accepted = to.filter((token) => !bad.has(token));
        return {
          status: 200,
          body: { code: 0, id: `m${ids}`, bad: Object.fromEntries(bad) },
          accepted,
        };
      },
    };
  });
  if (!tokenIssuer) throw new Error('the rules were not made');
  return Object.assign(gateway, { tokenIssuer, targetCodes, ambiguousTokens });
}

function targetsIn(body: Buffer): string[] {
  const to = parseObject(body.toString())?.to;
  return Array.isArray(to) ? to.filter((one) => typeof one === 'string') : [];
}

/** Returns the result of a code for one device, for the test of the table. */
export const attemptFor = (code: string | number) => attemptResult(rowOf(code), 200);
