/**
 * Client of OPPO (protocol/oppo.md#single-device to protocol/oppo.md#broadcast): up to a thousand messages per request, of
 * which OPPO drops repeats; or, for some content, one saved message that is broadcast to lists of devices.
 */

import {
  createHttpClient,
  type HttpClient,
  type HttpRequest,
  type HttpTiming,
} from '../../../shared/http/client.ts';
import type { HttpResult } from '../../../shared/http/result.ts';
import type { GatewayCheck, Sender, SenderContext, SendRequest } from '../../contract/connector.ts';
import type { AccessTokens } from '../../kit/access-token.ts';
import { type ExchangeResult, gatewayCall, sendMulticast } from '../../kit/multicast.ts';
import { receiptUrl } from '../../kit/receipt-url.ts';
import { reportAll, unrenderable } from '../../kit/response-rules.ts';
import { SavedMessages } from './broadcast.ts';
import { baseUrlOf, type OppoCredentials, type OppoRegion, regionOf } from './credentials.ts';
import { InvalidMessageDetector } from './errors.ts';
import { encodeMessage, messagesTo } from './messages.ts';
import { limits, type OppoPayload, renderOppo } from './payload.ts';
import { parseResponse } from './responses.ts';
import { accessTokens } from './tokens.ts';

const root = '/server/v1/message/notification';
/** Largest body: a thousand large messages would be many megabytes. */
const maxBodyBytes = 4_000_000;
/** Longest URL for receipts that OPPO accepts (protocol/oppo.md#notification). */
const callbackChars = 200;

/** Opens the sender of one profile; it connects with the first push. */
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
    const { clock, quota: book } = this.#context;
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
        tokens: clients.tokens,
        quota: { book, messageClass },
        isRepeatHidden,
        exchange: async (deviceTokens, token, signal) => {
          const result = isBroadcast
            ? await clients.saved.broadcast({ payload, deviceTokens, token, signal })
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
    if (callback === undefined || callback.length > callbackChars || 'call_back_url' in notification)
      return payload;
    const receiptFields = { call_back_url: callback, call_back_parameter: objectId };
    return { ...payload, notification: { ...notification, ...receiptFields } };
  }

  #clientsOf(region: OppoRegion): RegionClients {
    const { authEndpoint, ca } = this.#credentials;
    const context = this.#context;
    const baseUrl = baseUrlOf(this.#credentials, region);
    const known = this.#regionClients.get(baseUrl);
    if (known) return known;
    const authUrl = authEndpoint ?? baseUrl;
    const shared = { ca, timing: this.#timing, clock: context.clock };
    const client = createHttpClient({ baseUrl, ...shared });
    const authClient = createHttpClient({ baseUrl: authUrl, connections: 1, ...shared });
    const clients: RegionClients = {
      client,
      authClient,
      tokens: accessTokens(this.#credentials, { baseUrl: authUrl, context, client: authClient }),
      saved: new SavedMessages(root, (call) => this.#post(client, call)),
    };
    this.#regionClients.set(baseUrl, clients);
    if (this.#isClosed) void closeRegion(clients);
    return clients;
  }
}

const closeRegion = async ({ authClient, client }: RegionClients): Promise<void> => {
  await Promise.all([client.close(), authClient.close()]);
};
