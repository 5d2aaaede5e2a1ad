/**
 * Push services on loopback: Google, Mozilla, Apple, Microsoft, and a UnifiedPush server. Each is as
 * strict as the original (protocol/webpush.md#answers). The audience of the VAPID token tells which
 * service a request is for, because a profile with an `endpoint` sends all requests to this server.
 */
import { createPublicKey, verify } from 'node:crypto';
import { z } from 'zod';
import {
  type PushService,
  serviceOfHost,
} from '../../../shared/domain/installations/push-services.ts';
import {
  type GatewayRules,
  type GatewayState,
  type SandboxCall,
  type SandboxGateway,
  type SandboxOptions,
  type SandboxReply,
  startGateway,
} from '../http/server.ts';
import { type Browser, browserOf, decrypt, hashIn, tokenOf } from './browser.ts';

/** A message that a simulated browser received. */
export interface DeliveredMessage {
  endpoint: string;
  text: string;
  ttl: number;
  urgency: string | undefined;
  topic: string | undefined;
}

export interface WebPushGateway extends SandboxGateway {
  /** The last messages that browsers decrypted, oldest first. */
  readonly messages: DeliveredMessage[];
  /**
   * VAPID keys by endpoint, in base64url. A message with another key is refused. An endpoint
   * without an entry is bound to the key of its first message.
   */
  readonly keys: Map<string, string>;
  /** Browsers in addition to the simulated ones, by path and query of their endpoint. */
  readonly browsers: Map<string, Browser>;
}

/** Number of messages that the gateway keeps. */
const keptMessages = 1000;
const maxBodyBytes = 4096;
const dayS = 86_400;

/** Starts the gateway. Resolves when it listens. */
export async function startWebPushGateway(options: SandboxOptions): Promise<WebPushGateway> {
  const messages: DeliveredMessage[] = [];
  const keys = new Map<string, string>();
  const browsers = new Map<string, Browser>();
  const gateway = await startGateway(
    options,
    (state) => new WebPushRules({ ...state, messages, keys, browsers }),
  );
  return Object.assign(gateway, { messages, keys, browsers });
}

interface WebPushState extends GatewayState {
  messages: DeliveredMessage[];
  keys: Map<string, string>;
  browsers: Map<string, Browser>;
}

/** Why a request is refused. Each service has its own answer to it. */
type Fault =
  | 'noAuthorization'
  | 'badToken'
  | 'otherKey'
  | 'noTtl'
  | 'badUrgency'
  | 'badTopic'
  | 'cachePolicy'
  | 'encoding'
  | 'tooLarge'
  | 'gone'
  | 'unknown';

const apple = (status: number, reason: string): SandboxReply => ({ status, body: { reason } });
const mozilla = (status: number, errno: number, message: string): SandboxReply => ({
  status,
  body: { code: status, errno, error: 'Error', message },
});
const plain = (status: number, body: string): SandboxReply => ({ status, body });
const windows = (status: number, description: string): SandboxReply => ({
  status,
  headers: { 'x-wns-error-description': description },
});

const answers: Record<PushService, Record<Fault, SandboxReply>> = {
  google: {
    noAuthorization: plain(401, 'Authorization header must be specified'),
    badToken: plain(403, 'permission denied: invalid JWT provided'),
    otherKey: plain(
      403,
      'the VAPID credentials in the authorization header do not correspond to the credentials used to create the subscriptions',
    ),
    noTtl: plain(400, 'InvalidTtlParameter'),
    badUrgency: plain(400, 'invalid urgency'),
    badTopic: plain(400, 'invalid topic'),
    cachePolicy: plain(400, ''),
    encoding: plain(400, 'invalid content encoding'),
    tooLarge: plain(400, 'binary data passed in the request must be less than 4096 bytes'),
    gone: plain(410, 'push subscription has unsubscribed or expired'),
    unknown: plain(404, 'A valid push subscription endpoint should be specified in the URL'),
  },
  mozilla: {
    noAuthorization: mozilla(401, 109, 'Missing Authorization'),
    badToken: mozilla(401, 109, 'Invalid VAPID token'),
    otherKey: mozilla(401, 109, 'VAPID public key mismatch'),
    noTtl: mozilla(400, 111, 'Missing TTL'),
    badUrgency: mozilla(400, 110, 'Invalid urgency'),
    badTopic: mozilla(400, 113, 'Invalid Topic'),
    cachePolicy: mozilla(400, 999, ''),
    encoding: mozilla(400, 110, 'Unknown content encoding'),
    tooLarge: mozilla(413, 104, 'Payload too large'),
    gone: mozilla(410, 106, 'Subscription unknown'),
    unknown: mozilla(404, 102, 'Not an endpoint'),
  },
  apple: {
    noAuthorization: apple(403, 'BadJwtToken'),
    badToken: apple(403, 'BadJwtToken'),
    otherKey: apple(400, 'VapidPkHashMismatch'),
    noTtl: apple(400, 'BadTtl'),
    badUrgency: apple(400, 'BadUrgency'),
    badTopic: apple(400, 'BadWebPushTopic'),
    cachePolicy: apple(400, ''),
    encoding: apple(400, 'BadWebPushRequest'),
    tooLarge: apple(413, 'PayloadTooLarge'),
    gone: apple(410, 'Unregistered'),
    unknown: apple(404, 'BadPath'),
  },
  microsoft: {
    noAuthorization: windows(401, 'Missing authorization'),
    badToken: windows(401, 'Invalid token'),
    otherKey: windows(401, 'The public key does not match the channel'),
    noTtl: windows(400, 'Ttl is missing'),
    badUrgency: windows(400, 'Invalid urgency'),
    badTopic: windows(400, 'Invalid topic'),
    cachePolicy: windows(400, 'Ttl value conflicts with X-WNS-Cache-Policy.'),
    encoding: windows(400, 'Invalid content encoding'),
    tooLarge: windows(413, 'Payload too large'),
    gone: windows(410, 'Channel expired'),
    unknown: windows(404, 'Channel unknown'),
  },
  other: {
    noAuthorization: plain(401, 'VAPID is required'),
    badToken: plain(403, 'invalid VAPID token'),
    otherKey: plain(403, 'other VAPID key'),
    noTtl: plain(400, 'TTL is missing'),
    badUrgency: plain(400, 'invalid urgency'),
    badTopic: plain(400, 'invalid topic'),
    cachePolicy: plain(400, ''),
    encoding: plain(400, 'invalid content encoding'),
    tooLarge: plain(413, 'payload too large'),
    gone: plain(410, 'gone'),
    unknown: plain(404, 'not found'),
  },
};

const claimsForm = z.object({ aud: z.string(), exp: z.number(), sub: z.string() });

class WebPushRules implements GatewayRules {
  readonly successes = [{ path: '' }];
  readonly #state: WebPushState;

  constructor(state: WebPushState) {
    this.#state = state;
  }

  targetsOf(call: SandboxCall): { tokens: readonly string[] } {
    const browser = this.#browserOf(call);
    return { tokens: browser ? [tokenOf(browser)] : [] };
  }

  handle(call: SandboxCall): SandboxReply {
    const token = tokenIn(call);
    const origin = token?.claims?.aud ?? '';
    const service = URL.canParse(origin)
      ? (serviceOfHost(new URL(origin).host) ?? 'other')
      : 'other';
    const browser = this.#browserOf(call);
    const fault = this.#faultOf(call, { token, service, browser });
    if (fault !== undefined || !browser) return refusal(service, fault ?? 'unknown');
    const { text, senderKey } = decrypted(call.body, browser);
    if (
      text === undefined ||
      senderKey === undefined ||
      senderKey.toString('base64url') === token?.key
    )
      return refusal(service, 'encoding');
    this.#state.messages.push({
      endpoint: browser.endpoint,
      text: text.toString('utf8'),
      ttl: Number(call.headers.ttl),
      urgency: header(call, 'urgency'),
      topic: header(call, 'topic'),
    });
    if (this.#state.messages.length > keptMessages) this.#state.messages.shift();
    const location = { location: `${origin}/m/${this.#state.messages.length}` };
    return { status: 201, headers: location, accepted: [tokenOf(browser)] };
  }

  forget(): void {
    this.#state.messages.length = 0;
  }

  #browserOf({ path, query }: SandboxCall): Browser | undefined {
    const target = query.size === 0 ? path : `${path}?${query}`;
    const known = this.#state.browsers.get(target);
    if (known) return known;
    const hash = hashIn(target);
    if (hash === undefined) return undefined;
    const form = /\/wp\//.test(path)
      ? 'google'
      : /\/wpush\//.test(path)
        ? 'mozilla'
        : /\/w\/$/.test(path)
          ? 'microsoft'
          : 'apple';
    const browser = browserOf(hash, form);
    this.#state.browsers.set(target, browser);
    return browser;
  }

  /** Returns what is wrong with a request; undefined if the service would accept its headers. */
  #faultOf(
    call: SandboxCall,
    {
      token,
      service,
      browser,
    }: { token: VapidToken | undefined; service: PushService; browser: Browser | undefined },
  ): Fault | undefined {
    if (call.method !== 'POST' || !browser) return 'unknown';
    if (header(call, 'authorization') === undefined) return 'noAuthorization';
    if (!token || !isValid(token, originOf(browser), this.#state.nowMs() / 1000, service))
      return 'badToken';
    if (this.#state.deadTokens.has(tokenOf(browser))) return 'gone';
    const ttl = header(call, 'ttl');
    if (ttl === undefined || !/^\d+$/.test(ttl)) return 'noTtl';
    const policy = header(call, 'x-wns-cache-policy');
    if (service === 'microsoft' && (policy === 'no-cache') !== (Number(ttl) === 0))
      return 'cachePolicy';
    if (service === 'apple' && Number(ttl) === 0) return 'noTtl';
    const urgency = header(call, 'urgency');
    if (urgency !== undefined && !/^(very-low|low|normal|high)$/.test(urgency)) return 'badUrgency';
    const topic = header(call, 'topic');
    if (topic !== undefined && !isTopic(topic, service)) return 'badTopic';
    if (header(call, 'content-encoding') !== 'aes128gcm') return 'encoding';
    if (call.body.length > maxBodyBytes) return 'tooLarge';
    const bound = this.#state.keys.get(browser.endpoint) ?? token.key;
    this.#state.keys.set(browser.endpoint, bound);
    return bound === token.key ? undefined : 'otherKey';
  }
}

/** Faults that a sender could avoid. The gateway records them as violations. */
const avoidable: ReadonlySet<Fault> = new Set<Fault>([
  'noAuthorization',
  'badToken',
  'noTtl',
  'badUrgency',
  'badTopic',
  'cachePolicy',
  'encoding',
]);

const refusal = (service: PushService, fault: Fault): SandboxReply => ({
  ...answers[service][fault],
  ...(avoidable.has(fault) ? { violation: `${service}: ${fault}` } : {}),
});

const originOf = ({ endpoint }: Browser): string => new URL(endpoint).origin;

const isTopic = (topic: string, service: PushService): boolean =>
  /^[A-Za-z0-9_-]{1,32}$/.test(topic) && (service !== 'apple' || topic.length % 4 !== 1);

function header({ headers }: SandboxCall, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

interface VapidToken {
  key: string;
  head: string;
  payload: string;
  signature: string;
  claims: z.infer<typeof claimsForm> | undefined;
}

/** Parses `Authorization: vapid t=…, k=…` (RFC 8292, section 3). */
function tokenIn(call: SandboxCall): VapidToken | undefined {
  const [, jwt = '', key = ''] =
    /^vapid t=([\w.-]+),\s*k=([\w-]{87})$/.exec(header(call, 'authorization') ?? '') ?? [];
  const [head = '', payload = '', signature = ''] = jwt.split('.');
  if (signature === '') return undefined;
  try {
    const claims = claimsForm.safeParse(JSON.parse(Buffer.from(payload, 'base64url').toString()));
    return { key, head, payload, signature, claims: claims.data };
  } catch {
    return undefined;
  }
}

/** Checks signature, audience, lifetime and subject of a token. */
function isValid(token: VapidToken, origin: string, nowS: number, service: PushService): boolean {
  const { claims, head, key, payload, signature } = token;
  const { alg } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { alg?: unknown };
  if (!claims || alg !== 'ES256' || claims.aud !== origin) return false;
  if (claims.exp <= nowS || claims.exp > nowS + dayS) return false;
  if (!/^(mailto:[^\s<>@]+@[^\s<>@]+|https:\/\/\S+)$/.test(claims.sub)) return false;
  if (service === 'apple' && /localhost/.test(claims.sub)) return false;
  const point = Buffer.from(key, 'base64url');
  try {
    const publicKey = createPublicKey({
      format: 'jwk',
      key: {
        kty: 'EC',
        crv: 'P-256',
        x: point.subarray(1, 33).toString('base64url'),
        y: point.subarray(33).toString('base64url'),
      },
    });
    const signed = Buffer.from(`${head}.${payload}`);
    const bytes = Buffer.from(signature, 'base64url');
    return verify('sha256', signed, { key: publicKey, dsaEncoding: 'ieee-p1363' }, bytes);
  } catch {
    return false;
  }
}

function decrypted(body: Buffer, browser: Browser): { text?: Buffer; senderKey?: Buffer } {
  const opened = decrypt(body, browser);
  return opened.ok ? opened : {};
}
