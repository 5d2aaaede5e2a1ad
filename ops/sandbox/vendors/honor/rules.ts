import { isJsonObject, type JsonObject } from '../../../../shared/domain/json.ts';
import { anyToken, bearerOf, type TokenIssuer } from '../../http/access-tokens.ts';
import { formIn, objectIn } from '../../http/bodies.ts';
import type { GatewayRules, GatewayState, SandboxCall, SandboxReply } from '../../http/gateway.ts';
import { bodyFault } from './message.ts';

/** Credentials of an app, as Honor's console issues them. */
export interface HonorApp {
  appId: string;
  clientId: string;
  clientSecret: string;
}

/** State of the gateway, which tests can change. */
export interface HonorMemory {
  app: HonorApp;
  tokenIssuer: TokenIssuer;
  /** Devices with a temporary failure (`failTokens`); `deadTokens` of the gateway are `expireTokens`. */
  failTokens: Set<string>;
  /** Devices for which the whole request is refused, without naming them. */
  ambiguousTokens: Set<string>;
  devicesPerSecond: number;
  testsPerDay: number;
}

const tokenPath = '/auth/token';
const maxTokens = 1000;
const maxBytes = 4096;
/** Maximum age of a request by its `timestamp`. */
const maxAgeMs = 600_000;

/** Creates the rules of one app's gateway (protocol/honor.md). */
export function honorRules(memory: HonorMemory, state: GatewayState): GatewayRules {
  const counters = { second: 0, devices: 0, tests: 0, requests: 0 };
  const handle = (call: SandboxCall): SandboxReply => {
    if (call.path === tokenPath) return grantToken(call, memory);
    const refusal = callRefusal(call, memory, state.nowMs());
    if (refusal) return refusal;
    const body = bodyOf(call);
    const tokens = tokensOf(body);
    const fault = countFault(tokens) ?? sizeFault(call, tokens) ?? bodyFault(body);
    // Honor's codes are not public: the violation is what matters.
    if (fault !== null) return { status: 400, body: { code: 400, message: fault }, violation: fault };
    const second = Math.floor(state.nowMs() / 1000);
    if (second !== counters.second) Object.assign(counters, { second, devices: 0 });
    counters.devices += tokens.length;
    counters.tests += isTest(body) ? 1 : 0;
    if (counters.devices > memory.devicesPerSecond || (isTest(body) && counters.tests > memory.testsPerDay))
      return { status: 429, body: { code: 429, message: 'too many requests' } };
    if (tokens.some((token) => memory.ambiguousTokens.has(token)))
      return { status: 200, body: { code: 400, message: 'invalid push token' } };
    counters.requests += 1;
    return delivered(tokens, { memory, state, requestId: `h${counters.requests}` });
  };
  return {
    targetsOf: (call) =>
      call.path === tokenPath ? { tokens: [], isTokenCall: true } : { tokens: tokensOf(bodyOf(call)) },
    handle,
    successes: [
      {
        path: '/sendMessage',
        body: {
          code: 200,
          message: 'success',
          data: { sendResult: true, requestId: 'h1', failTokens: [], expireTokens: [] },
        },
      },
      { path: tokenPath, body: anyToken, isPreparation: true },
    ],
  };
}

/** Answers the token call (protocol/honor.md#access-token). */
function grantToken(call: SandboxCall, { app, tokenIssuer }: HonorMemory): SandboxReply {
  const { headers, method } = call;
  if (method !== 'POST' || !/^application\/x-www-form-urlencoded\b/.test(headers['content-type'] ?? ''))
    return {
      status: 400,
      body: { error: 'invalid_request' },
      violation: 'a token call whose body is not a form',
    };
  const form = formIn(call);
  if (form.get('grant_type') !== 'client_credentials')
    return { status: 400, body: { error: 'unsupported_grant_type' } };
  if (form.get('client_id') !== app.clientId || form.get('client_secret') !== app.clientSecret)
    return { status: 401, body: { error: 'invalid_client' } };
  const { value, expiresIn } = tokenIssuer.issue();
  return { status: 200, body: { access_token: value, expires_in: expiresIn, token_type: 'Bearer' } };
}

/** Checks path, access token and headers (protocol/honor.md#access-token). */
function callRefusal(
  { headers, method, path }: SandboxCall,
  { app, tokenIssuer }: HonorMemory,
  nowMs: number,
): SandboxReply | null {
  if (method !== 'POST' || path !== `/api/v1/${app.appId}/sendMessage`)
    return { status: 404, body: '', violation: `no such path: ${method} ${path}` };
  if (tokenIssuer.check(bearerOf(headers.authorization)) !== 'valid')
    return { status: 401, body: { code: 401, message: 'invalid access token' } };
  if (!/^application\/json; ?charset=utf-8$/i.test(headers['content-type'] ?? ''))
    return { status: 400, body: { code: 400 }, violation: 'not sent as JSON in UTF-8' };
  const { timestamp = '' } = headers;
  if (!/^\d{13}$/.test(String(timestamp)) || Math.abs(Number(timestamp) - nowMs) > maxAgeMs)
    return { status: 400, body: { code: 400 }, violation: 'the timestamp is missing or old' };
  return null;
}

/** Builds the 200 response with the devices that failed (protocol/honor.md#answers). */
function delivered(
  tokens: string[],
  { memory, state, requestId }: { memory: HonorMemory; state: GatewayState; requestId: string },
): SandboxReply {
  const expireTokens = tokens.filter((token) => state.deadTokens.has(token));
  const failTokens = tokens.filter((token) => memory.failTokens.has(token) && !state.deadTokens.has(token));
  const refused = new Set([...expireTokens, ...failTokens]);
  const accepted = tokens.filter((token) => !refused.has(token));
  const data = { sendResult: accepted.length > 0, requestId, failTokens, expireTokens };
  const isTwice = new Set(tokens).size < tokens.length;
  return {
    status: 200,
    body: { code: 200, message: 'success', data },
    accepted,
    ...(isTwice ? { violation: 'a token twice in a request' } : {}),
  };
}

const countFault = ({ length }: string[]): string | null =>
  length < 1 || length > maxTokens ? `${length} tokens in a request` : null;

/** Checks the size of the body without its tokens: their texts, quotes and commas. */
function sizeFault({ body }: SandboxCall, tokens: string[]): string | null {
  const bytes = body.length - (Buffer.byteLength(JSON.stringify(tokens)) - 2);
  return bytes > maxBytes ? `a body of ${bytes} bytes` : null;
}

const isTest = ({ android }: JsonObject): boolean => isJsonObject(android) && android.targetUserType === 1;

const tokensOf = ({ token }: JsonObject): string[] =>
  Array.isArray(token) ? token.filter((one) => typeof one === 'string') : [];

/** Returns the body; empty, and so refused, if it is not a JSON object. */
const bodyOf = (call: SandboxCall): JsonObject => objectIn(call) ?? {};
