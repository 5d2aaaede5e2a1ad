import { createHttpClient, defaultHttpTiming, type HttpClient } from '../../shared/http/client.ts';
import type {
  GatewayCheck,
  PersonalTexts,
  Recipient,
  Sender,
  SenderContext,
  SendRequest,
} from '../contract/connector.ts';
import { openTransport } from '../http2/pooled-transport.ts';
import {
  defaultTiming,
  type Transport,
  type TransportLoad,
  type TransportTiming,
} from '../http2/transport.ts';
import type { AccessTokens } from '../kit/access-token.ts';
import { checkHttp2 } from '../kit/connection-check.ts';
import { expired, reportAll, unrenderable } from '../kit/response-rules.ts';
import type { FcmCredentials } from './credentials.ts';
import { Delivery } from './delivery.ts';
import { type FcmLabel, type FcmPayload, renderFcm } from './payload.ts';
import { accountTokens, tokenAddress } from './service-account.ts';

const host = 'https://fcm.googleapis.com';

export interface FcmTuning {
  timing: TransportTiming;
  /** Connections per credential and thread: each carries 100 requests at a time (protocol/fcm.md#limits). */
  maxConnections: number;
}

/** At most one ping a minute: Google treats frequent pings as an attack (protocol/fcm.md#connections). */
export const defaultTuning: FcmTuning = {
  timing: { ...defaultTiming, pingAfterMs: 60_000 },
  maxConnections: 16,
};

/** Opens the sender of one service account; it connects with the first push. */
export function openFcm(
  label: FcmLabel,
  credentials: FcmCredentials,
  { context, tuning }: { context: SenderContext; tuning: FcmTuning },
): Sender {
  const { clock, tokens: store } = context;
  const { ca, endpoint = host, proxy, serviceAccount } = credentials;
  const timing = { ...defaultHttpTiming, drainMs: tuning.timing.drainMs };
  const client = createHttpClient({
    baseUrl: tokenAddress(credentials).base,
    ca,
    proxy,
    connections: 1,
    timing,
    clock,
  });
  const options = { baseUrl: endpoint, ca, proxy, ...tuning, clock, onEvent: context.onTransport };
  const transport = openTransport(options);
  const tokens = accountTokens({ credentials, store, clock, client });
  const connect = () => checkHttp2(options);
  const projectId = serviceAccount.project_id;
  return new FcmSender({ label, context, client, transport, connect, tokens, projectId });
}

interface SenderDeps {
  label: FcmLabel;
  context: SenderContext;
  /** Client of the token call. */
  client: HttpClient;
  transport: Transport;
  /** Opens and closes a connection. */
  connect(): Promise<GatewayCheck>;
  tokens: AccessTokens;
  projectId: string;
}

class FcmSender implements Sender {
  readonly #deps: SenderDeps;

  constructor(deps: SenderDeps) {
    this.#deps = deps;
  }

  async send(request: SendRequest): Promise<void> {
    const { context, label } = this.#deps;
    const { message, recipients } = request;
    if (recipients.length === 0) return;
    const nowMs = context.clock.now();
    if (message.expiresAtMs <= nowMs) return reportAll(request, expired);
    const rendering = renderFcm(label, message, nowMs);
    if (!rendering.ok) return reportAll(request, unrenderable(rendering));
    const { payload } = rendering;
    await new Delivery({ ...this.#deps, payload, request }).run();
  }

  async sendTexts(
    request: Omit<SendRequest, 'recipients'>,
    { groups, dataOf }: PersonalTexts,
  ): Promise<void> {
    const { context, label } = this.#deps;
    const { message, report } = request;
    const nowMs = context.clock.now();
    if (message.expiresAtMs <= nowMs)
      return reportAll({ recipients: groups.flatMap(({ recipients }) => recipients), report }, expired);
    const recipients: Recipient[] = [];
    const ends = new Map<number, string>();
    let shared: FcmPayload | undefined;
    for (const group of groups) {
      const rendering = renderFcm(label, { ...message, data: dataOf(group.values) }, nowMs);
      if (!rendering.ok) {
        reportAll({ recipients: group.recipients, report }, unrenderable(rendering));
        continue;
      }
      const { body, tokenAt } = rendering.payload;
      const end = body.toString('utf8', tokenAt);
      for (const recipient of group.recipients) ends.set(recipient.index, end);
      recipients.push(...group.recipients);
      // What the payloads have beside their bodies does not depend on the texts.
      shared ??= rendering.payload;
    }
    if (!shared) return;
    await new Delivery({ ...this.#deps, payload: shared, ends, request: { ...request, recipients } }).run();
  }

  warmUp(): Promise<void> {
    return this.#deps.transport.connect();
  }

  async check(): Promise<GatewayCheck> {
    const token = await this.#deps.tokens.check();
    if (!token.ok) return token;
    const connection = await this.#deps.connect();
    return connection.ok ? token : connection;
  }

  load(): TransportLoad {
    return this.#deps.transport.load();
  }

  async close(): Promise<void> {
    await Promise.all([this.#deps.transport.close(), this.#deps.client.close()]);
  }
}
