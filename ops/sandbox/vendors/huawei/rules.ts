import { constants, generateKeyPairSync, randomBytes, randomInt, verify } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../../../../shared/domain/json.ts';
import {
  anyToken,
  bearerOf,
  formIn,
  type GatewayRules,
  type GatewayState,
  objectIn,
  type SandboxCall,
  type SandboxReply,
  type TokenIssuer,
} from '../../http/server.ts';
import { type Fault, isWithin, v1Fault } from './message-v1.ts';
import { v3Fault } from './message-v3.ts';

/**
 * Credentials of app and project as AppGallery Connect issues them, and the public key for the
 * gateway.
 */
export interface HuaweiApp {
  appId: string;
  appSecret: string;
  serviceAccount: { project_id: string; key_id: string; sub_account: string; private_key: string };
  /** Public key of `serviceAccount` in PEM (SPKI). */
  publicKey: string;
}

/**
 * Creates an app (protocol/huawei.md#access-tokens). Its secret contains characters that a form
 * must escape.
 */
export function createHuaweiApp(): HuaweiApp {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return {
    appId: String(randomInt(100_000_000, 110_000_000)),
    appSecret: `${randomBytes(30).toString('base64')}+/=&`,
    serviceAccount: {
      project_id: String(randomInt(1_000_000_000, 2_000_000_000)),
      key_id: randomBytes(16).toString('hex'),
      sub_account: String(randomInt(100_000_000, 110_000_000)),
      private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    },
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

const tokenPath = '/oauth2/v3/token';
const audience = 'https://oauth-login.cloud.huawei.com/oauth2/v3/token';

/**
 * Answers the token call (protocol/huawei.md#access-tokens), which sends client credentials as a
 * form.
 */
function grantToken(call: SandboxCall, app: HuaweiApp, tokenIssuer: TokenIssuer): SandboxReply {
  const { headers, method } = call;
  const refuse = (error: number, sub_error: number, error_description: string): SandboxReply => ({
    status: 400,
    body: { error, sub_error, error_description },
  });
  if (
    method !== 'POST' ||
    !/^application\/x-www-form-urlencoded\b/.test(headers['content-type'] ?? '')
  )
    return {
      ...refuse(1102, 20041, 'bad request'),
      violation: 'a token call whose body is not a form',
    };
  const form = formIn(call);
  if (form.get('grant_type') !== 'client_credentials') return refuse(1102, 20041, 'grant_type');
  if (form.get('client_id') !== app.appId) return refuse(1101, 20001, 'invalid client_id');
  if (form.get('client_secret') !== app.appSecret)
    return refuse(1101, 20044, 'invalid client_secret');
  const { value, expiresIn } = tokenIssuer.issue();
  // Huawei escapes slashes in JSON. A client that does not parse the JSON reads a wrong token.
  const text = JSON.stringify({
    access_token: `DQEBA/${value}`,
    expires_in: expiresIn,
    token_type: 'Bearer',
  });
  return { status: 200, body: text.replaceAll('/', '\\/') };
}

/** Returns the error of an access token as a code of the send call; null if the token is valid. */
function accessProblem(bearer: string | undefined, tokenIssuer: TokenIssuer): string | null {
  const state = tokenIssuer.check(
    bearer?.startsWith('DQEBA/') ? bearer.slice('DQEBA/'.length) : undefined,
  );
  if (state === 'valid') return null;
  return state === 'expired' ? '80200003' : '80200001';
}

const dayS = 86_400;

/**
 * Returns the error of a service account's JWT (protocol/huawei.md#service-account); null if it is
 * valid. `nowS` is in epoch seconds.
 */
function jwtProblem(
  bearer: string | undefined,
  { publicKey, serviceAccount }: HuaweiApp,
  nowS: number,
): string | null {
  const [head = '', claims = '', signature = '', ...more] = (bearer ?? '').split('.');
  const header = decoded(head);
  const payload = decoded(claims);
  if (!header || !payload || more.length > 0) return '80200001';
  const isFromAccount =
    header.alg === 'PS256' &&
    header.typ === 'JWT' &&
    header.kid === serviceAccount.key_id &&
    payload.iss === serviceAccount.sub_account &&
    payload.aud === audience;
  const { exp, iat } = payload;
  if (!isFromAccount || typeof exp !== 'number' || typeof iat !== 'number') return '80200001';
  const key = { key: publicKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
  if (!verify('sha256', Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url')))
    return '80200001';
  if (exp - iat > dayS) return '80300036';
  if (iat > nowS) return '80200001';
  return exp <= nowS ? '80200005' : null;
}

function decoded(part: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString());
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** State of the gateway. Tests can change it. */
export interface HuaweiMemory {
  app: HuaweiApp;
  tokenIssuer: TokenIssuer;
  /**
   * For v3: tokens with the reason of their refusal. `deadTokens` are refused with
   * `tokenFormatError`.
   */
  refusedTokens: Map<string, string>;
  /**
   * Tokens of HarmonyOS 5 and newer that do not begin with `MAMz`. The form of a token does not
   * determine its system.
   */
  harmonyTokens: Set<string>;
  /** Android tokens that begin with `MAMz`. */
  androidTokens: Set<string>;
  /**
   * Maximum devices per second over v1 and v3 together. Further requests get the response for flow
   * control (protocol/huawei.md#limits).
   */
  devicesPerSecond: number;
  /** Test messages per day, for the app in v1 and for the project in v3. */
  testsPerDay: number;
}

interface Counters {
  second: number;
  devices: number;
  tests: number;
  requests: number;
}

type Api = 'v1' | 'v3';
const maxTokens = 1000;
const maxBytes = 4096;

/** Creates the rules for the gateway of one app (protocol/huawei.md). */
export function huaweiRules(memory: HuaweiMemory, state: GatewayState): GatewayRules {
  const counters: Counters = { second: 0, devices: 0, tests: 0, requests: 0 };
  return {
    targetsOf: (call) =>
      call.path === tokenPath
        ? { tokens: [], isTokenCall: true }
        : { tokens: [...tokensOf(objectIn(call)), ...recalledTokensOf(objectIn(call))] },
    handle: (call) =>
      call.path === tokenPath
        ? grantToken(call, memory.app, memory.tokenIssuer)
        : new CallHandler(memory, state, counters).handle(call),
    successes: [
      {
        path: '/messages:send',
        body: { code: '80000000', msg: 'Success', requestId: '157190000000100000000101' },
      },
      { path: tokenPath, body: anyToken, isPreparation: true },
    ],
  };
}

class CallHandler {
  readonly #memory: HuaweiMemory;
  readonly #state: GatewayState;
  readonly #counters: Counters;

  constructor(memory: HuaweiMemory, state: GatewayState, counters: Counters) {
    this.#memory = memory;
    this.#state = state;
    this.#counters = counters;
  }

  handle(call: SandboxCall): SandboxReply {
    if (call.method === 'POST' && call.path === `/v1/${this.#memory.app.appId}/messages:revoke`)
      return this.#recall(call);
    const api = this.#apiOf(call);
    if (api === null)
      return { status: 404, body: '', violation: `no such path: ${call.method} ${call.path}` };
    const refusal = this.#accessRefusal(call, api);
    if (refusal !== null) return this.#respond(401, refusal, 'auth failed');
    if (!/^application\/json; ?charset=utf-8$/i.test(call.headers['content-type'] ?? ''))
      return {
        ...this.#respond(400, '80100001', 'Illegal content type'),
        violation: 'not sent as JSON in UTF-8',
      };
    const body = objectIn(call);
    if (body === undefined) return this.#respond(400, '80100003', 'no JSON');
    const tokens = tokensOf(body);
    const fault =
      countFault(tokens) ?? sizeFault(call, tokens) ?? this.#messageFault(body, api, call);
    if (fault !== null) return this.#respond(200, fault.code, fault.msg);
    const limit = this.#limit(body, tokens, api);
    return limit ?? this.#deliver(tokens, api);
  }

  /**
   * Recalls notifications of HarmonyOS devices (protocol/huawei.md#recall). The token must be a JWT.
   */
  #recall(call: SandboxCall): SandboxReply {
    const refusal = this.#accessRefusal(call, 'v3');
    if (refusal !== null) return this.#respond(401, refusal, 'auth failed');
    const pushType = [call.headers['push-type']].flat()[0];
    if (pushType !== '0' && pushType !== '2')
      return this.#respond(400, '80100001', 'Illegal push-type');
    const body = objectIn(call);
    if (body === undefined) return this.#respond(400, '80100003', 'no JSON');
    const { notifyId, token, ...more } = body;
    const tokens = recalledTokensOf(body);
    const isComplete = Array.isArray(token) && tokens.length === token.length;
    if (!isComplete || !isWithin(notifyId, 0, 0x7fffffff) || Object.keys(more).length > 0)
      return this.#respond(400, '80300032', 'give token and notifyId');
    const fault = countFault(tokens);
    if (fault !== null) return this.#respond(200, fault.code, fault.msg);
    if (call.body.length > maxBytes)
      return this.#respond(200, '80300008', 'Recall is longer than 4096 bytes.');
    const refused = new Map(
      tokens.flatMap((one): [string, string][] => {
        const why = this.#refusal(one, 'v3');
        return why === null ? [] : [[one, why]];
      }),
    );
    const accepted = tokens.filter((one) => !refused.has(one));
    if (refused.size === 0) return { ...this.#respond(200, '80000000', 'Success'), accepted };
    const msg = partialV3(accepted, refused);
    return accepted.length > 0
      ? { ...this.#respond(200, '80100020', msg), accepted }
      : this.#respond(200, '80300007', msg);
  }

  #apiOf({ method, path }: SandboxCall): Api | null {
    const { appId, serviceAccount } = this.#memory.app;
    if (method !== 'POST') return null;
    if (path === `/v1/${appId}/messages:send`) return 'v1';
    return path === `/v3/${serviceAccount.project_id}/messages:send` ? 'v3' : null;
  }

  /**
   * Checks the access token. v1 accepts both kinds, v3 only a JWT (protocol/huawei.md#two-apis).
   */
  #accessRefusal({ headers }: SandboxCall, api: Api): string | null {
    const { app, tokenIssuer } = this.#memory;
    const bearer = bearerOf(headers.authorization);
    const isJwt = bearer?.split('.').length === 3;
    if (api === 'v1' && !isJwt) return accessProblem(bearer, tokenIssuer);
    return jwtProblem(bearer, app, Math.floor(this.#state.nowMs() / 1000));
  }

  #messageFault(body: JsonObject, api: Api, { headers }: SandboxCall): Fault | null {
    const type = headers['push-type'];
    return api === 'v1' ? v1Fault(body) : v3Fault(body, Array.isArray(type) ? type[0] : type);
  }

  /**
   * Applies flow control and the limits for tests (protocol/huawei.md#answers,
   * protocol/huawei.md#limits).
   */
  #limit(body: JsonObject, tokens: string[], api: Api): SandboxReply | null {
    const second = Math.floor(this.#state.nowMs() / 1000);
    if (second !== this.#counters.second) Object.assign(this.#counters, { second, devices: 0 });
    if (this.#counters.devices + tokens.length > this.#memory.devicesPerSecond)
      return { status: 503, body: '' };
    this.#counters.devices += tokens.length;
    if (!isTest(body)) return null;
    if (tokens.length > 10)
      return api === 'v3'
        ? this.#respond(200, '80300030', 'When send test message, token count exceed limit.')
        : {
            ...this.#respond(200, '80100001', 'test'),
            violation: `${tokens.length} devices in a test`,
          };
    this.#counters.tests += 1;
    return this.#counters.tests > this.#memory.testsPerDay
      ? this.#respond(200, '80300029', 'When send test message, the api request exceed limit.')
      : null;
  }

  /**
   * Sends to the devices. A token that a request contains twice is a violation, because the device
   * gets the message twice (protocol/huawei.md#messages).
   */
  #deliver(tokens: string[], api: Api): SandboxReply {
    const refused = new Map<string, string>();
    for (const token of tokens) {
      const reason = this.#refusal(token, api);
      if (reason !== null) refused.set(token, reason);
    }
    const accepted = tokens.filter((token) => !refused.has(token));
    const twice =
      new Set(tokens).size < tokens.length ? { violation: 'a token twice in a request' } : {};
    if (refused.size === 0)
      return { ...this.#respond(200, '80000000', 'Success'), accepted, ...twice };
    const msg = api === 'v1' ? partialV1(accepted, refused) : partialV3(accepted, refused);
    if (accepted.length > 0) return { ...this.#respond(200, '80100000', msg), accepted, ...twice };
    return {
      ...this.#respond(200, '80300007', api === 'v1' ? 'All the tokens are invalid' : msg),
      ...twice,
    };
  }

  #refusal(token: string, api: Api): string | null {
    const { deadTokens } = this.#state;
    if (deadTokens.has(token)) return 'tokenFormatError';
    // A token of one operating system is invalid for the other operating system.
    const isHarmony = this.#isHarmony(token);
    if (api === 'v1') return isHarmony ? 'noRight' : null;
    return this.#memory.refusedTokens.get(token) ?? (isHarmony ? null : 'noRight');
  }

  #isHarmony(token: string): boolean {
    const { androidTokens, harmonyTokens } = this.#memory;
    return harmonyTokens.has(token) || (token.startsWith('MAMz') && !androidTokens.has(token));
  }

  #respond(status: number, code: string, msg: string): SandboxReply {
    this.#counters.requests += 1;
    return {
      status,
      body: { code, msg, requestId: `15719${String(this.#counters.requests).padStart(8, '0')}` },
    };
  }
}

const partialV1 = (accepted: string[], refused: Map<string, string>): string =>
  JSON.stringify({
    success: accepted.length,
    failure: refused.size,
    illegal_tokens: [...refused.keys()],
  });

function partialV3(accepted: string[], refused: Map<string, string>): string {
  const illegalTokens = Object.groupBy([...refused.keys()], (token) => refused.get(token) ?? '');
  return JSON.stringify({ illegalTokens, success: accepted.length, failure: refused.size });
}

const countFault = ({ length }: string[]): Fault | null =>
  length < 1 || length > maxTokens
    ? { code: '80300010', msg: `token count should within 1 and ${maxTokens}.` }
    : null;

/**
 * Checks the size of the body without the tokens and their quotes and commas
 * (protocol/huawei.md#messages).
 */
function sizeFault({ body }: SandboxCall, tokens: string[]): Fault | null {
  const ofTokens = Buffer.byteLength(JSON.stringify(tokens)) - 2;
  return body.length - ofTokens > maxBytes
    ? { code: '80300008', msg: 'Push message size is too long.' }
    : null;
}

function isTest({ message, pushOptions }: JsonObject): boolean {
  const android = isJsonObject(message) && isJsonObject(message.android) ? message.android : {};
  return (
    android.target_user_type === 1 ||
    (isJsonObject(pushOptions) && pushOptions.testMessage === true)
  );
}

/** Returns the tokens of a recall, which names them directly. */
const recalledTokensOf = ({ token }: JsonObject = {}): string[] =>
  Array.isArray(token) ? token.filter((one) => typeof one === 'string') : [];

function tokensOf(body: JsonObject | undefined): string[] {
  const { message, target } = body ?? {};
  const holder = isJsonObject(message) ? message : isJsonObject(target) ? target : {};
  return Array.isArray(holder.token) ? holder.token.filter((one) => typeof one === 'string') : [];
}
