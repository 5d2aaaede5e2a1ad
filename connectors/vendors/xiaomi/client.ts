/**
 * Client of Xiaomi. A request sends one message to at most 1000 devices through the host of their
 * region (protocol/xiaomi.md).
 */

import { z } from 'zod';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { reason } from '../../../shared/domain/reasons.ts';
import {
  createHttpClient,
  formPost,
  type HttpClient,
  type HttpTiming,
} from '../../../shared/http/client.ts';
import type { HttpResponse } from '../../../shared/http/result.ts';
import type {
  CredentialReport,
  GatewayCheck,
  Rate,
  Recipient,
  Sender,
  SenderContext,
  SendRequest,
} from '../../contract/connector.ts';
import {
  authEndpoint,
  common,
  inspectTrust,
  requiredText,
  secretText,
} from '../../contract/credentials.ts';
import { checkConnection } from '../../kit/connection-check.ts';
import {
  type ExchangeResult,
  gatewayCall,
  sendMulticast,
  unreadable,
} from '../../kit/multicast.ts';
import { deviceTokensIn, receiptUrl } from '../../kit/receipts.ts';
import {
  failed,
  type ResponseRule,
  reportAll,
  ruleForReply,
  unrenderable,
} from '../../kit/response-rules.ts';
import { parseObject } from '../../kit/values.ts';
import { identityOfXiaomi, limits, renderXiaomi, type XiaomiPayload } from './payload.ts';
import { deadToken, requestedReceipts } from './receipts.ts';
import {
  channelQuotaExceeded,
  forUncertainRegion,
  invalidRegId,
  ruleForResponse,
  unknownInRegion,
} from './responses.ts';

/**
 * Hosts by region (protocol/xiaomi.md#hosts). Only the host of a device's region knows the device.
 */
const hosts = {
  china: 'https://api.xmpush.xiaomi.com',
  russia: 'https://ru-api.xmpush.global.xiaomi.com',
  india: 'https://idmb-api.xmpush.global.xiaomi.com',
  europe: 'https://fr-api.xmpush.global.xiaomi.com',
  global: 'https://sgp-api.xmpush.global.xiaomi.com',
} as const;

type XiaomiRegion = keyof typeof hosts;

const regionNames = [
  'china',
  'russia',
  'india',
  'europe',
  'global',
] as const satisfies XiaomiRegion[];

export const xiaomiCredentials = z.strictObject({
  appId: secretText('appId'),
  appSecret: secretText('appSecret'),
  packageName: requiredText('packageName').regex(
    /^[A-Za-z][A-Za-z0-9_.]{0,127}$/,
    'packageName must be an Android package name',
  ),
  /**
   * Region of all devices of this profile. If absent, devices of the vendor `mi` are in China, and
   * devices of the vendor `mi-intl` are outside China.
   */
  region: z.enum(regionNames, `region must be one of ${regionNames.join(', ')}`).optional(),
  ...common,
  ...authEndpoint,
});

export type XiaomiCredentials = z.infer<typeof xiaomiCredentials>;

/** Region of a device. If `isRegionCertain` is false, it is only the most likely region. */
interface DeviceRegion {
  region: XiaomiRegion;
  isRegionCertain: boolean;
}

/**
 * Returns the region of a device. The vendor `mi-intl` means outside China. If the profile has no
 * `region`, requests for these devices go to the global host, and the response proves nothing about
 * the device.
 */
export function regionFor(
  { region }: Pick<XiaomiCredentials, 'region'>,
  vendor: string | null | undefined,
): DeviceRegion {
  if (region !== undefined) return { region, isRegionCertain: true };
  return vendor?.toLowerCase() === 'mi-intl'
    ? { region: 'global', isRegionCertain: false }
    : { region: 'china', isRegionCertain: true };
}

/** Returns the base URL of a region, unless the profile sets `endpoint`. */
export const baseUrlOf = (
  { endpoint }: Pick<XiaomiCredentials, 'endpoint'>,
  region: XiaomiRegion,
): string => endpoint ?? hosts[region];

/**
 * Returns the rate in requests per second (protocol/xiaomi.md#limits). The default is the rate of
 * the smallest apps. Xiaomi allows apps with many users up to 3000. The profile then sets the rate.
 */
export function rateOf({
  ratePerSecond: perSecond = 500,
}: Pick<XiaomiCredentials, 'ratePerSecond'>): Rate {
  return { perSecond, counts: 'requests', burst: Math.ceil(perSecond / 10), rampMs: 0 };
}

/** Reports on the credentials. A secret contains no expiry time, so only `ca` is checked. */
export function inspectXiaomi({ ca }: XiaomiCredentials, nowMs: number): CredentialReport {
  return { kind: 'secret', ...inspectTrust(ca, nowMs) };
}

const path = '/v3/message/regid';
const recallPath = '/v1/message/regid/revoke';
/** Separator of the devices of a request. */
const separator = ',';

/** Opens the sender of one profile. It connects when the first push is sent. */
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
    if (!rendering.ok) return reportAll(request, unrenderable(rendering));
    const parts = [...this.#byRegion(request.recipients)].map((part) =>
      this.#sendPart({ ...request, recipients: part.recipients }, part, rendering.payload),
    );
    await Promise.all(parts);
  }

  /** Recalls a notification by its number (protocol/xiaomi.md#recall). */
  async recall(request: SendRequest): Promise<void> {
    const identity = identityOfXiaomi(request.message);
    if (!identity)
      return reportAll(request, failed(0, reason('notRecallable', { connector: 'vendor_b' })));
    const { clock } = this.#context;
    const { packageName: restricted_package_name } = this.#credentials;
    const parts = [...this.#byRegion(request.recipients)].map((part) =>
      sendMulticast(
        {
          clock,
          group: `recall ${part.region}`,
          recipientsPerRequest: limits.recipientsPerRequest,
          separator,
          isRepeatHidden: true,
          exchange: (deviceTokens, _token, signal) => {
            const registration_ids = deviceTokens.join(separator);
            const form = { registration_ids, restricted_package_name, ...identity };
            return this.#exchange({ path: recallPath, form, deviceTokens, signal }, part);
          },
        },
        { ...request, recipients: part.recipients },
      ),
    );
    await Promise.all(parts);
  }

  check(): Promise<GatewayCheck> {
    const { region } = regionFor(this.#credentials, null);
    const baseUrl = baseUrlOf(this.#credentials, region);
    return checkConnection({ baseUrl, ca: this.#credentials.ca }, this.#timing.connectMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#clients.values()].map((client) => client.close()));
  }

  /** Groups devices by region. Devices of a group share requests. */
  #byRegion(recipients: Recipient[]): Iterable<RegionGroup> {
    const parts = new Map<XiaomiRegion, RegionGroup>();
    for (const recipient of recipients) {
      const { region, isRegionCertain } = regionFor(this.#credentials, recipient.vendor);
      const part = parts.get(region);
      if (part) part.recipients.push(recipient);
      else parts.set(region, { region, isRegionCertain, recipients: [recipient] });
    }
    return parts.values();
  }

  #sendPart(request: SendRequest, part: RegionGroup, payload: XiaomiPayload): Promise<void> {
    const { region, isRegionCertain } = part;
    const { clock, quota: dayQuota } = this.#context;
    const form = this.#formOf(payload, request.message.objectId, isRegionCertain);
    return sendMulticast(
      {
        clock,
        group: region,
        recipientsPerRequest: limits.recipientsPerRequest,
        separator,
        quota: { dayQuota, messageClass: payload.messageClass },
        isRepeatHidden: payload.isRepeatHidden,
        exchange: (deviceTokens, _token, signal) => {
          const body = { registration_id: deviceTokens.join(separator), ...form };
          return this.#exchange({ path, form: body, deviceTokens, signal }, part);
        },
      },
      request,
    );
  }

  /** Sends one form to the host of a region. */
  async #exchange(
    call: {
      path: string;
      form: Record<string, string>;
      deviceTokens: readonly string[];
      signal: AbortSignal;
    },
    { region, isRegionCertain }: RegionGroup,
  ): Promise<ExchangeResult> {
    const { form, deviceTokens, signal } = call;
    const authorization = `key=${this.#credentials.appSecret}`;
    const post = formPost(call.path, form, { authorization });
    const reply = await this.#clientOf(region).request({ ...post, signal });
    const result =
      reply.kind === 'response' ? parseResponse(reply, deviceTokens, isRegionCertain) : reply;
    this.#context.onCall(gatewayCall(result, reply.seconds));
    return result;
  }

  /**
   * Returns the form without the devices. It contains the package name, and the receipt URL unless
   * the push sets its own.
   */
  #formOf(
    { fields }: XiaomiPayload,
    objectId: string,
    isRegionCertain: boolean,
  ): Record<string, string> {
    const form: Record<string, string> = {
      restricted_package_name: this.#credentials.packageName,
      ...fields,
    };
    const callback = receiptUrl(this.#context, this.#credentials);
    if (callback === undefined || 'extra.callback' in fields) return form;
    form['extra.callback'] = callback;
    form['extra.callback.param'] = objectId;
    form['extra.callback.type'] = String(
      isRegionCertain ? requestedReceipts : requestedReceipts - deadToken,
    );
    return form;
  }

  #clientOf(region: XiaomiRegion): HttpClient {
    const baseUrl = baseUrlOf(this.#credentials, region);
    const existing = this.#clients.get(baseUrl);
    if (existing) return existing;
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

interface RegionGroup {
  region: XiaomiRegion;
  isRegionCertain: boolean;
  recipients: Recipient[];
}

/**
 * Parses a response (protocol/xiaomi.md#answers). If `isRegionCertain` is false, the response never
 * marks a token as dead.
 */
function parseResponse(
  reply: HttpResponse,
  deviceTokens: readonly string[],
  isRegionCertain: boolean,
): ExchangeResult {
  const body = parseObject(reply.body);
  const code = body?.code;
  if (!body || (typeof code !== 'number' && typeof code !== 'string')) return unreadable(reply);
  const data = isJsonObject(body.data) ? body.data : {};
  const regionRule = ruleForReply(reply.status, ruleForResponse(code, body.reason));
  const rule = isRegionCertain ? regionRule : forUncertainRegion(regionRule);
  const targets =
    rule.reaction === 'sent'
      ? parseTargets(data, deviceTokens, isRegionCertain)
      : new Map<string, ResponseRule>();
  const isQuotaExceeded =
    deviceTokens.length > 0 &&
    deviceTokens.every((one) => targets.get(one) === channelQuotaExceeded);
  return {
    kind: 'parsed',
    status: reply.status,
    rule: isQuotaExceeded ? channelQuotaExceeded : rule,
    targets,
    messageId: textOf(data.id) ?? textOf(body.trace_id),
    retryAfterMs: reply.retryAfterMs,
  };
}

/**
 * Parses the devices that a successful response excludes: `bad_regids` lists tokens,
 * `channel_exceed_quota` contains only a number.
 */
function parseTargets(
  data: JsonObject,
  deviceTokens: readonly string[],
  isRegionCertain: boolean,
): Map<string, ResponseRule> {
  const targets = new Map<string, ResponseRule>();
  for (const deviceToken of listOf(memberOf(data, 'bad_regids')))
    targets.set(deviceToken, isRegionCertain ? invalidRegId : unknownInRegion);
  // Xiaomi does not name these devices. Pick as many devices as it counts, so that the totals are
  // right.
  const good = deviceTokens.filter((deviceToken) => !targets.has(deviceToken));
  const excludedCount = countOf(memberOf(data, 'channel_exceed_quota'));
  for (const deviceToken of excludedCount > 0 ? good.slice(-excludedCount) : [])
    targets.set(deviceToken, channelQuotaExceeded);
  return targets;
}

/**
 * Finds a member by its name, ignoring case, because Xiaomi's own clients spell the names
 * differently.
 */
function memberOf(data: JsonObject, name: string): Json | undefined {
  return Object.entries(data).find(([key]) => key.toLowerCase() === name)?.[1];
}

const listOf = (value: Json | undefined): string[] =>
  typeof value === 'string' ? deviceTokensIn(value) : [];

/** Sums the counts in a list: `no_channel:2 a:3` returns 5. */
const countOf = (value: Json | undefined): number =>
  typeof value === 'string'
    ? [...value.matchAll(/:(\d{1,6})\b/g)].reduce((sum, [, count]) => sum + Number(count), 0)
    : 0;

const textOf = (value: Json | undefined): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
