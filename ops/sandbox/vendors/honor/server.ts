/** Honor Push gateway with its token call (protocol/honor.md). */

import { randomBytes, randomInt } from 'node:crypto';
import { systemClock } from '../../../../shared/clock.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';
import {
  anyToken,
  bearerOf,
  formIn,
  type GatewayRules,
  type GatewayState,
  objectIn,
  type SandboxCall,
  type SandboxGateway,
  type SandboxOptions,
  type SandboxReply,
  startGateway,
  TokenIssuer,
} from '../../http/server.ts';
import { buttonsFault, isHttpsUrl } from '../../kit/rich-content.ts';

const topMembers = new Set(['notification', 'data', 'android', 'token']);

/** Returns the first error in a body (protocol/honor.md#message), or null. */
export function bodyFault(body: JsonObject): string | null {
  const unknownMember = Object.keys(body).find((name) => !topMembers.has(name));
  if (unknownMember !== undefined) return `${unknownMember} is no member of the body`;
  const { android = {}, data, notification: common } = body;
  if (data !== undefined && typeof data !== 'string') return 'data must be a string';
  if (!isJsonObject(android)) return 'android must be an object';
  const { notification } = android;
  const shared = isJsonObject(common) ? common : {};
  if (common === undefined && notification === undefined)
    return androidFault(android) ?? (data === undefined ? 'neither data nor a notification' : null);
  if (!isJsonObject(notification)) return 'a notification needs android.notification';
  return androidFault(android) ?? notificationFault({ ...shared, ...notification });
}

function androidFault({ biTag, data, targetUserType, ttl }: JsonObject): string | null {
  if (
    ttl !== undefined &&
    !(typeof ttl === 'string' && /^\d{1,7}s$/.test(ttl) && Number.parseInt(ttl, 10) <= 1_296_000)
  )
    return 'ttl must be seconds with an s, at most 1296000s';
  if (biTag !== undefined && typeof biTag !== 'string') return 'biTag must be a string';
  if (data !== undefined && typeof data !== 'string') return 'android.data must be a string';
  return targetUserType === undefined || isWithin(targetUserType, 0, 1)
    ? null
    : 'targetUserType must be 0 or 1';
}

function notificationFault(notification: JsonObject): string | null {
  const { badge, bigBody, bigTitle, body, clickAction, importance, notifyId, style, tag, title } =
    notification;
  if (!isText(title) || !isText(body)) return 'title and body are needed';
  const { buttons, image } = notification;
  if (image !== undefined && !isHttpsUrl(image)) return 'image must be https';
  const button = buttonsFault(buttons, { action: 'actionType', intentType: 'intentType' });
  if (button !== null) return button;
  const action = clickFault(clickAction);
  if (action !== null) return action;
  if (importance !== undefined && importance !== 'LOW' && importance !== 'NORMAL')
    return 'importance must be LOW or NORMAL';
  if (style === 1 && (bigTitle !== title || bigBody !== body)) return 'large text must be the text';
  if (tag !== undefined && typeof tag !== 'string') return 'tag must be a string';
  if (notifyId !== undefined && !isWithin(notifyId, 0, 0x7fffffff))
    return 'notifyId must be a number';
  return badge === undefined ? null : badgeFault(badge);
}

function clickFault(action: Json | undefined): string | null {
  if (!isJsonObject(action) || !isWithin(action.type, 1, 3)) return 'clickAction is needed';
  if (action.type === 1 && !isText(action.intent) && !isText(action.action))
    return 'clickAction needs an intent or an action';
  return action.type === 2 && !/^https:\/\//.test(String(action.url))
    ? 'clickAction.url must be https'
    : null;
}

function badgeFault(badge: Json): string | null {
  if (!isJsonObject(badge)) return 'badge must be an object';
  const { addNum, badgeClass, setNum } = badge;
  if (addNum !== undefined && !isWithin(addNum, 1, 99)) return 'addNum must be 1 to 99';
  if (setNum !== undefined && !isWithin(setNum, 0, 99)) return 'setNum must be 0 to 99';
  return badgeClass === undefined || isText(badgeClass) ? null : 'badgeClass must be a string';
}

const isText = (value: Json | undefined): boolean => typeof value === 'string' && value !== '';
const isWithin = (value: Json | undefined, from: number, to: number): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to;

/** Credentials of an app as Honor's console issues them. */
export interface HonorApp {
  appId: string;
  clientId: string;
  clientSecret: string;
}

/** State of the gateway. Tests can change it. */
export interface HonorMemory {
  app: HonorApp;
  tokenIssuer: TokenIssuer;
  /**
   * Devices with a temporary failure (`failTokens`). The gateway's `deadTokens` are reported as
   * `expireTokens`.
   */
  failTokens: Set<string>;
  /** Devices for which the whole request is refused without naming the device. */
  ambiguousTokens: Set<string>;
  devicesPerSecond: number;
  testsPerDay: number;
}

const tokenPath = '/auth/token';
const maxTokens = 1000;
const maxBytes = 4096;
/** Maximum age of a request, by its `timestamp`. */
const maxAgeMs = 600_000;

/** Creates the rules for the gateway of one app (protocol/honor.md). */
export function honorRules(memory: HonorMemory, state: GatewayState): GatewayRules {
  const counters = { second: 0, devices: 0, tests: 0, requests: 0 };
  const handle = (call: SandboxCall): SandboxReply => {
    if (call.path === tokenPath) return grantToken(call, memory);
    const refusal = callRefusal(call, memory, state.nowMs());
    if (refusal) return refusal;
    const body = bodyOf(call);
    const tokens = tokensOf(body);
    const fault = countFault(tokens) ?? sizeFault(call, tokens) ?? bodyFault(body);
    // Honor's codes are not public. Tests check the violation.
    if (fault !== null)
      return { status: 400, body: { code: 400, message: fault }, violation: fault };
    const second = Math.floor(state.nowMs() / 1000);
    if (second !== counters.second) Object.assign(counters, { second, devices: 0 });
    counters.devices += tokens.length;
    counters.tests += isTest(body) ? 1 : 0;
    if (
      counters.devices > memory.devicesPerSecond ||
      (isTest(body) && counters.tests > memory.testsPerDay)
    )
      return { status: 429, body: { code: 429, message: 'too many requests' } };
    if (tokens.some((token) => memory.ambiguousTokens.has(token)))
      return { status: 200, body: { code: 400, message: 'invalid push token' } };
    counters.requests += 1;
    return delivered(tokens, { memory, state, requestId: `h${counters.requests}` });
  };
  return {
    targetsOf: (call) =>
      call.path === tokenPath
        ? { tokens: [], isTokenCall: true }
        : { tokens: tokensOf(bodyOf(call)) },
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
  if (
    method !== 'POST' ||
    !/^application\/x-www-form-urlencoded\b/.test(headers['content-type'] ?? '')
  )
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
  return {
    status: 200,
    body: { access_token: value, expires_in: expiresIn, token_type: 'Bearer' },
  };
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
  const failTokens = tokens.filter(
    (token) => memory.failTokens.has(token) && !state.deadTokens.has(token),
  );
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

/** Checks the size of the body without the tokens and their quotes and commas. */
function sizeFault({ body }: SandboxCall, tokens: string[]): string | null {
  const bytes = body.length - (Buffer.byteLength(JSON.stringify(tokens)) - 2);
  return bytes > maxBytes ? `a body of ${bytes} bytes` : null;
}

const isTest = ({ android }: JsonObject): boolean =>
  isJsonObject(android) && android.targetUserType === 1;

const tokensOf = ({ token }: JsonObject): string[] =>
  Array.isArray(token) ? token.filter((one) => typeof one === 'string') : [];

/** Returns the body. A body that is not a JSON object becomes an empty object, which is refused. */
const bodyOf = (call: SandboxCall): JsonObject => objectIn(call) ?? {};

export interface HonorOptions extends SandboxOptions {
  /** App that the gateway accepts. A new app by default. */
  app?: HonorApp;
  devicesPerSecond?: number;
  testsPerDay?: number;
}

/** One status of a receipt (protocol/honor.md#receipts). */
export interface HonorReceipt {
  token: string;
  status: number;
  biTag?: string;
  requestId?: string;
  timestamp?: number;
}

export interface HonorGateway extends SandboxGateway {
  /** State of the gateway. Changes take effect at once. */
  memory: HonorMemory;
  /** Sends receipts like Honor. Returns HTTP status and body of the reply. */
  sendReceipt(
    url: string,
    receipts: readonly HonorReceipt[],
  ): Promise<{ status: number; body: string }>;
}

/** Creates an app. Its secret contains characters that a form must escape. */
export const createHonorApp = (): HonorApp => ({
  appId: String(randomInt(104_000_000, 105_000_000)),
  clientId: randomBytes(16).toString('hex'),
  clientSecret: `${randomBytes(24).toString('base64')}+/=&`,
});

/** Starts the gateway of one app. Resolves when it listens. */
export async function startHonorGateway(options: HonorOptions = {}): Promise<HonorGateway> {
  const {
    app = createHonorApp(),
    devicesPerSecond = Number.POSITIVE_INFINITY,
    testsPerDay = 1000,
  } = options;
  const clock = options.clock ?? systemClock;
  const tokenIssuer = new TokenIssuer(() => clock.now());
  const lists = { failTokens: new Set<string>(), ambiguousTokens: new Set<string>() };
  const memory: HonorMemory = { app, tokenIssuer, ...lists, devicesPerSecond, testsPerDay };
  const gateway = await startGateway(options, (state) => honorRules(memory, state));
  const sendReceipt: HonorGateway['sendReceipt'] = async (url, receipts) => {
    const reply = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json; charset=UTF-8' },
      body: honorReceiptBody(app.appId, receipts),
    });
    return { status: reply.status, body: await reply.text() };
  };
  return Object.assign(gateway, { memory, sendReceipt });
}

/** Builds the body of a receipt call. */
export function honorReceiptBody(appid: string, receipts: readonly HonorReceipt[]): string {
  const statuses = receipts.map(({ timestamp = systemClock.now(), ...rest }) => ({
    ...rest,
    appid,
    timestamp,
  }));
  return JSON.stringify({ statuses });
}
