/**
 * The door to Xiaomi: one message to a thousand devices per request, to the region that they are in
 * (protocol/xiaomi.md).
 */
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import {
  createHttpClient,
  formPost,
  type HttpClient,
  type HttpResponse,
  type HttpTiming,
} from '../../../shared/http/client.ts';
import type { Recipient, Sender, SenderContext, SendRequest } from '../../contract/connector.ts';
import { parseObject } from '../../kit/access-token.ts';
import { unfit } from '../../kit/attempt-results.ts';
import { callbackFor } from '../../kit/callback.ts';
import { callOf, type Reading, sendMany, unreadable } from '../../kit/multicast.ts';
import { addressesIn } from '../../kit/receipts.ts';
import type { Row } from '../../kit/response-rules.ts';
import { baseUrlOf, homeOf, type XiaomiCredentials, type XiaomiRegion } from './credentials.ts';
import { answerOf, badRegId, leftOut, strangeRegId, unsure } from './errors.ts';
import { limits, renderXiaomi, type XiaomiPayload } from './payload.ts';
import { deadToken, wantedReceipts } from './receipts.ts';

const path = '/v3/message/regid';

/** Opens the door for one app of the gateway; connects with the first push. */
export function openXiaomi(
  credentials: XiaomiCredentials,
  { context, timing }: { context: SenderContext; timing: HttpTiming },
): Sender {
  return new XiaomiSender(credentials, context, timing);
}

class XiaomiSender implements Sender {
  readonly #credentials: XiaomiCredentials;
  readonly #context: SenderContext;
  readonly #timing: HttpTiming;
  readonly #clients = new Map<string, HttpClient>();
  #isClosed = false;

  constructor(credentials: XiaomiCredentials, context: SenderContext, timing: HttpTiming) {
    this.#credentials = credentials;
    this.#context = context;
    this.#timing = timing;
  }

  async send(request: SendRequest): Promise<void> {
    const rendering = renderXiaomi(request.message, this.#context.clock.now());
    if (!rendering.ok) {
      for (const { index } of request.recipients) request.report(index, unfit(rendering));
      return;
    }
    const parts = [...this.#byHome(request.recipients)].map((part) =>
      this.#sendPart({ ...request, recipients: part.recipients }, part, rendering.payload),
    );
    await Promise.all(parts);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#clients.values()].map((client) => client.close()));
  }

  /** Devices of one region, which share requests. */
  #byHome(recipients: Recipient[]): Iterable<Part> {
    const parts = new Map<XiaomiRegion, Part>();
    for (const recipient of recipients) {
      const { region, isSure } = homeOf(this.#credentials, recipient.vendor);
      const part = parts.get(region);
      if (part) part.recipients.push(recipient);
      else parts.set(region, { region, isSure, recipients: [recipient] });
    }
    return parts.values();
  }

  #sendPart(request: SendRequest, { region, isSure }: Part, payload: XiaomiPayload): Promise<void> {
    const { clock, quota: book } = this.#context;
    const client = this.#clientOf(region);
    const form = this.#formOf(payload, request.message.pushId, isSure);
    return sendMany(
      {
        clock,
        recipientsPerRequest: limits.recipientsPerRequest,
        quota: { book, messageClass: payload.messageClass },
        isRepeatHidden: payload.isRepeatHidden,
        exchange: async (addresses, _token, signal) => {
          const authorization = `key=${this.#credentials.appSecret}`;
          const body = { registration_id: addresses.join(','), ...form };
          const reply = await client.request({ ...formPost(path, body, { authorization }), signal });
          const reading = reply.kind === 'response' ? readingOf(reply, addresses, isSure) : reply;
          this.#context.onCall(callOf(reading, reply.seconds));
          return reading;
        },
      },
      request,
    );
  }

  /** The form around the devices: the package, and where receipts go unless the caller named an address. */
  #formOf({ fields }: XiaomiPayload, pushId: string, isSure: boolean): Record<string, string> {
    const form: Record<string, string> = {
      restricted_package_name: this.#credentials.packageName,
      ...fields,
    };
    const callback = callbackFor(this.#context, this.#credentials);
    if (callback === undefined || 'extra.callback' in fields) return form;
    form['extra.callback'] = callback;
    form['extra.callback.param'] = pushId;
    form['extra.callback.type'] = String(isSure ? wantedReceipts : wantedReceipts - deadToken);
    return form;
  }

  #clientOf(region: XiaomiRegion): HttpClient {
    const baseUrl = baseUrlOf(this.#credentials, region);
    const known = this.#clients.get(baseUrl);
    if (known) return known;
    const client = createHttpClient({
      baseUrl,
      ca: this.#credentials.ca,
      timing: this.#timing,
      clock: this.#context.clock,
    });
    this.#clients.set(baseUrl, client);
    if (this.#isClosed) void client.close();
    return client;
  }
}

interface Part {
  region: XiaomiRegion;
  isSure: boolean;
  recipients: Recipient[];
}

/** What an answer means (protocol/xiaomi.md#answers). `isSure`: the region is known to be that of the devices. */
export function readingOf(reply: HttpResponse, addresses: readonly string[], isSure: boolean): Reading {
  const body = parseObject(reply.body);
  const code = body?.code;
  if (!body || (typeof code !== 'number' && typeof code !== 'string')) return unreadable(reply);
  const data = isJsonObject(body.data) ? body.data : {};
  const told = answerOf(code, body.reason);
  const row = isSure ? told : unsure(told);
  const targets = row.reaction === 'sent' ? judged(data, addresses, isSure) : new Map<string, Row>();
  const isNobodyLeft = addresses.length > 0 && addresses.every((one) => targets.get(one) === leftOut);
  return {
    kind: 'answer',
    status: reply.status,
    row: isNobodyLeft ? leftOut : row,
    targets,
    messageId: textOf(data.id) ?? textOf(body.trace_id),
    retryAfterMs: reply.retryAfterMs,
  };
}

/** Devices that a success leaves out: those it names, and those it only counts. */
function judged(data: JsonObject, addresses: readonly string[], isSure: boolean): Map<string, Row> {
  const targets = new Map<string, Row>();
  for (const address of listOf(memberOf(data, 'bad_regids')))
    targets.set(address, isSure ? badRegId : strangeRegId);
  // Nobody is named: so many of them are counted, whoever they are, so that the totals are right.
  const good = addresses.filter((address) => !targets.has(address));
  const left = countOf(memberOf(data, 'channel_exceed_quota'));
  for (const address of left > 0 ? good.slice(-left) : []) targets.set(address, leftOut);
  return targets;
}

/** Spelled in several ways by the gateway's own clients. */
function memberOf(data: JsonObject, name: string): Json | undefined {
  return Object.entries(data).find(([key]) => key.toLowerCase() === name)?.[1];
}

const listOf = (value: Json | undefined): string[] => (typeof value === 'string' ? addressesIn(value) : []);

/** `no_channel:2 a:3` is five messages. */
const countOf = (value: Json | undefined): number =>
  typeof value === 'string'
    ? [...value.matchAll(/:(\d{1,6})\b/g)].reduce((sum, [, count]) => sum + Number(count), 0)
    : 0;

const textOf = (value: Json | undefined): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
