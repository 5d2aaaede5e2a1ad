/**
 * Client of OPPO (protocol/oppo.md#single-device to protocol/oppo.md#broadcast). A request contains
 * up to 1000 messages, and OPPO drops repeated messages. Some content needs a broadcast: the
 * message is saved once and then sent to lists of devices.
 */

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { hourMs } from '../../../shared/clock.ts';
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import {
  createHttpClient,
  formPost,
  type HttpClient,
  type HttpRequest,
  type HttpTiming,
} from '../../../shared/http/client.ts';
import type { HttpResult } from '../../../shared/http/result.ts';
import type {
  CredentialReport,
  GatewayCheck,
  Rate,
  Sender,
  SenderContext,
  SendRequest,
} from '../../contract/connector.ts';
import { authEndpoint, common, inspectTrust, secretText } from '../../contract/credentials.ts';
import { AccessTokens, isToken, tokenFromReply, tokenRefusal } from '../../kit/access-token.ts';
import { type ExchangeResult, gatewayCall, sendMulticast } from '../../kit/multicast.ts';
import { receiptUrl } from '../../kit/receipts.ts';
import { reportAll, unrenderable } from '../../kit/response-rules.ts';
import { type SavableMessage, SavedMessages } from '../../kit/saved-messages.ts';
import { limits, type OppoPayload, renderOppo } from './payload.ts';
import { dataOf, InvalidMessageDetector, parseResponse, ruleFor } from './responses.ts';

// Sends one message to many devices (protocol/oppo.md#broadcast): saves it once, then broadcasts it
// to lists of devices.

interface Broadcast {
  payload: OppoPayload;
  deviceTokens: readonly string[];
  token: string;
  signal: AbortSignal;
}

/** Separator of the devices of a broadcast. */
const separator = ';';
/** Code of OPPO for a saved message that it does not have. */
const noSavedMessage = '31';

/**
 * Returns the message of a broadcast and its two calls. `post` sends one call and parses its
 * response.
 */
function savable(
  { deviceTokens, payload: { envelope, notification }, signal, token }: Broadcast,
  post: (request: HttpRequest) => Promise<ExchangeResult>,
): SavableMessage {
  const { off_line_ttl: timeToLiveS, ...content } = notification;
  // OPPO stores one message per id, and another thread may have saved this message.
  const { app_message_id: _, ...saved } = notification;
  const form = (members: Record<string, string>) => ({ auth_token: token, ...members });
  return {
    key: JSON.stringify(content),
    timeToLiveS: Number(timeToLiveS ?? 0),
    save: () => post(formPost(`${root}/save_message_content`, form(formFields(saved)))),
    sendTo: (savedId) =>
      post({
        ...formPost(
          `${root}/broadcast`,
          form({
            message_id: savedId,
            target_type: '2',
            target_value: deviceTokens.join(separator),
            ...formFields(envelope),
          }),
        ),
        signal,
      }),
  };
}

/** Encodes each member as a form field. */
const formFields = (members: JsonObject): Record<string, string> =>
  Object.fromEntries(
    Object.entries(members).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  );

/**
 * Hosts by region (protocol/oppo.md#hosts). Profiles of older accounts set `endpoint` to another
 * host.
 */
const hosts = {
  china: 'https://api-push-cn.heytapmobi.com',
  abroad: 'https://api-intl.push.oppomobile.com',
} as const;

type OppoRegion = keyof typeof hosts;

export const oppoCredentials = z.strictObject({
  appKey: secretText('appKey'),
  /** The master secret. OPPO also issues an app secret, which does not work here. */
  masterSecret: secretText('masterSecret'),
  ...common,
  ...authEndpoint,
});

export type OppoCredentials = z.infer<typeof oppoCredentials>;

/** Prefix of usual registration ids in China. */
const chinaPrefix = 'CN_';

/**
 * Returns the region of a registration id (protocol/oppo.md#hosts). It is China if the id has only
 * one part, or if the second last of its two or three parts is `CN`.
 */
export function regionOf(registrationId: string): OppoRegion {
  if (registrationId.startsWith(chinaPrefix) && !registrationId.includes('_', chinaPrefix.length))
    return 'china';
  const parts = registrationId.split('_');
  if (parts.length === 1) return 'china';
  return parts.length <= 3 && parts.at(-2) === 'CN' ? 'china' : 'abroad';
}

/** Returns the base URL of a region, unless the profile sets `endpoint`. */
export const baseUrlOf = (
  { endpoint }: Pick<OppoCredentials, 'endpoint'>,
  region: OppoRegion,
): string => endpoint ?? hosts[region];

/**
 * Returns the rate in devices per second over all calls (protocol/oppo.md#limits). The default is
 * the rate of the smallest apps. OPPO allows larger apps up to 30000, depending on users and
 * category. The profile then sets the rate.
 */
export const rateOf = ({
  ratePerSecond: perSecond = 5000,
}: Pick<OppoCredentials, 'ratePerSecond'>): Rate => ({
  perSecond,
  counts: 'recipients',
  burst: 0,
  rampMs: 0,
});

/** Reports on the credentials. A secret contains no expiry time, so only `ca` is checked. */
export function inspectOppo({ ca }: OppoCredentials, nowMs: number): CredentialReport {
  return { kind: 'secret', ...inspectTrust(ca, nowMs) };
}

// Requests of messages to one device, and of batches of messages (protocol/oppo.md#single-device,
// protocol/oppo.md#batch).

/**
 * A message encoded for the form, split at its device. The messages of a request differ only in the
 * device.
 */
interface EncodedMessage {
  /** Up to the quote before the device. */
  head: string;
  /** From the quote after the device. */
  tail: string;
  /** Approximate length of one message with its device. */
  chars: number;
}

const quote = encodeURIComponent('"');
const comma = encodeURIComponent(',');

/** Encodes the message of a push. */
function encodeMessage({ envelope, notification }: OppoPayload): EncodedMessage {
  const rest = JSON.stringify({ ...envelope, notification }).slice(1);
  const head = encodeURIComponent('{"target_type":2,"target_value":"');
  const tail = encodeURIComponent(`",${rest}`);
  return { head, tail, chars: head.length + tail.length + 100 };
}

/** Builds a request with one message to one device, or with a batch of messages. */
function messagesTo(
  deviceTokens: readonly string[],
  message: EncodedMessage,
  options: { root: string; token: string },
): HttpRequest {
  const { root, token } = options;
  const isOne = deviceTokens.length === 1;
  return {
    ...formPost(`${root}/${isOne ? 'unicast' : 'unicast_batch'}`, {}),
    body: joinParts(deviceTokens.map(encodeDevice), {
      before: `auth_token=${encodeURIComponent(token)}&${isOne ? 'message=' : 'messages=%5B'}${message.head}`,
      between: `${message.tail}${comma}${message.head}`,
      after: `${message.tail}${isOne ? '' : '%5D'}`,
    }),
  };
}

/** Registration ids that need no escape. */
const plainId = /^[\w-]+$/;

const encodeDevice = (deviceToken: string): string =>
  plainId.test(deviceToken)
    ? deviceToken
    : encodeURIComponent(JSON.stringify(deviceToken)).slice(quote.length, -quote.length);

/**
 * Joins the parts as bytes. Joining strings would copy the megabyte of a large request three times.
 * All parts are ASCII.
 */
function joinParts(
  parts: readonly string[],
  texts: { before: string; between: string; after: string },
): Buffer {
  const { after, before } = texts;
  const between = Buffer.from(texts.between, 'latin1');
  const length =
    parts.reduce((sum, part) => sum + part.length, 0) +
    before.length +
    between.length * Math.max(0, parts.length - 1) +
    after.length;
  const bytes = Buffer.allocUnsafe(length);
  let at = bytes.write(before, 0, 'latin1');
  for (const [i, part] of parts.entries()) {
    if (i > 0) {
      bytes.set(between, at);
      at += between.length;
    }
    at += bytes.write(part, at, 'latin1');
  }
  bytes.write(after, at, 'latin1');
  return bytes;
}

// Access tokens of OPPO (protocol/oppo.md#access-token). Threads and dispatchers share them.

const path = '/server/v1/auth';
/**
 * OPPO's tokens are valid for 24 hours. They are renewed after 20 hours, so that no request uses an
 * expired token.
 */
const lifetimeMs = 20 * hourMs;

/** Signs a token call: a digest of the key, the time in epoch milliseconds, and the secret. */
export const signatureOf = (
  { appKey, masterSecret }: Pick<OppoCredentials, 'appKey' | 'masterSecret'>,
  timestamp: string,
): string => createHash('sha256').update(`${appKey}${timestamp}${masterSecret}`).digest('hex');

/** Creates the tokens of one app at one host. `client` sends the token call. */
function accessTokens(
  credentials: OppoCredentials,
  { baseUrl, context, client }: { baseUrl: string; context: SenderContext; client: HttpClient },
): AccessTokens {
  const { appKey, masterSecret } = credentials;
  return new AccessTokens({
    store: context.tokens,
    clock: context.clock,
    credential: JSON.stringify([baseUrl, appKey, masterSecret]),
    fetch: async () => {
      const timestamp = String(context.clock.now());
      const form = { app_key: appKey, timestamp, sign: signatureOf(credentials, timestamp) };
      return tokenFromReply(await client.request(formPost(path, form)), (body, status) => {
        const { code } = body;
        if (typeof code !== 'number' && typeof code !== 'string') return null;
        const rule = ruleFor(code);
        if (rule.code !== '0') return tokenRefusal(rule, status, 'oppoToken');
        const data = dataOf(body.data);
        const value = isJsonObject(data) ? data.auth_token : undefined;
        return isToken(value) ? { value, lifetimeMs } : null;
      });
    },
  });
}

const root = '/server/v1/message/notification';
/** Maximum size of a body. A thousand large messages would need many megabytes. */
const maxBodyBytes = 4_000_000;
/** Maximum length of the URL for receipts (protocol/oppo.md#notification). */
const callbackChars = 200;

/** Opens the sender of one profile. It connects when the first push is sent. */
export function openOppo(
  credentials: OppoCredentials,
  { context, timing }: { context: SenderContext; timing: HttpTiming },
): Sender {
  return new OppoSender(credentials, context, timing);
}

/** Clients, access tokens and saved messages of one region. */
interface RegionClients {
  client: HttpClient;
  authClient: HttpClient;
  tokens: AccessTokens;
  saved: SavedMessages;
}

class OppoSender implements Sender {
  readonly #credentials: OppoCredentials;
  readonly #context: SenderContext;
  readonly #timing: HttpTiming;
  readonly #regionClients = new Map<string, RegionClients>();
  #isClosed = false;

  constructor(credentials: OppoCredentials, context: SenderContext, timing: HttpTiming) {
    this.#credentials = credentials;
    this.#context = context;
    this.#timing = timing;
  }

  async send(request: SendRequest): Promise<void> {
    const rendering = renderOppo(request.message, this.#context.clock.now());
    if (!rendering.ok) return reportAll(request, unrenderable(rendering));
    const payload = this.#withCallback(rendering.payload, request.message.objectId);
    const parts = Map.groupBy(request.recipients, ({ deviceToken }) => regionOf(deviceToken));
    const sends = [...parts].map(([region, recipients]) =>
      this.#sendPart({ ...request, recipients }, region, payload),
    );
    await Promise.all(sends);
  }

  check(): Promise<GatewayCheck> {
    return this.#clientsOf(regionOf('')).tokens.check();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#regionClients.values()].map(closeRegion));
  }

  #sendPart(request: SendRequest, region: OppoRegion, payload: OppoPayload): Promise<void> {
    const { clock, quota: dayQuota } = this.#context;
    const clients = this.#clientsOf(region);
    const { isBroadcast, isRepeatHidden, messageClass } = payload;
    const message = encodeMessage(payload);
    const maxMessages = Math.floor(maxBodyBytes / message.chars);
    const detector = new InvalidMessageDetector();
    return sendMulticast(
      {
        clock,
        group: region,
        recipientsPerRequest: isBroadcast
          ? limits.recipientsPerRequest
          : Math.max(1, Math.min(limits.recipientsPerRequest, maxMessages)),
        ...(isBroadcast ? { separator } : {}),
        tokens: clients.tokens,
        quota: { dayQuota, messageClass },
        isRepeatHidden,
        exchange: async (deviceTokens, token, signal) => {
          const result = isBroadcast
            ? await clients.saved.send(
                savable({ payload, deviceTokens, token, signal }, (call) =>
                  this.#post(clients.client, call),
                ),
              )
            : await this.#post(clients.client, {
                ...messagesTo(deviceTokens, message, { root, token }),
                signal,
              });
          return result.kind === 'parsed'
            ? { ...result, rule: detector.classify(result.rule, deviceTokens.length) }
            : result;
        },
      },
      request,
    );
  }

  async #post(client: HttpClient, request: HttpRequest): Promise<ExchangeResult> {
    const reply: HttpResult = await client.request(request);
    const result = reply.kind === 'response' ? parseResponse(reply) : reply;
    this.#context.onCall(gatewayCall(result, reply.seconds));
    return result;
  }

  /** Adds the URL for receipts, unless the push sets one. */
  #withCallback(payload: OppoPayload, objectId: string): OppoPayload {
    const { notification } = payload;
    const callback = receiptUrl(this.#context, this.#credentials);
    if (
      callback === undefined ||
      callback.length > callbackChars ||
      'call_back_url' in notification
    )
      return payload;
    const receiptFields = { call_back_url: callback, call_back_parameter: objectId };
    return { ...payload, notification: { ...notification, ...receiptFields } };
  }

  #clientsOf(region: OppoRegion): RegionClients {
    const { authEndpoint, ca } = this.#credentials;
    const context = this.#context;
    const baseUrl = baseUrlOf(this.#credentials, region);
    const existing = this.#regionClients.get(baseUrl);
    if (existing) return existing;
    const authUrl = authEndpoint ?? baseUrl;
    const shared = { ca, timing: this.#timing, clock: context.clock };
    const client = createHttpClient({ baseUrl, ...shared });
    const authClient = createHttpClient({ baseUrl: authUrl, connections: 1, ...shared });
    const clients: RegionClients = {
      client,
      authClient,
      tokens: accessTokens(this.#credentials, { baseUrl: authUrl, context, client: authClient }),
      saved: new SavedMessages(noSavedMessage, 'saved_without_id'),
    };
    this.#regionClients.set(baseUrl, clients);
    if (this.#isClosed) void closeRegion(clients);
    return clients;
  }
}

const closeRegion = async ({ authClient, client }: RegionClients): Promise<void> => {
  await Promise.all([client.close(), authClient.close()]);
};
