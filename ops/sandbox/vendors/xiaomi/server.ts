/**
 * Xiaomi's push gateway on loopback: as strict as the original (protocol/xiaomi.md), with configurable misbehaviour, and
 * receipts.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { systemClock } from '../../../../shared/clock.ts';
import type { GatewayRules, GatewayState } from '../../http/gateway.ts';
import { ReceiptLog, type ReceiptPost, type ReceiptRequest } from '../../http/receipts.ts';
import {
  formIn,
  type SandboxCall,
  type SandboxGateway,
  type SandboxOptions,
  type SandboxReply,
  startGateway,
} from '../../http/server.ts';
import { faultOf, regIdsOf } from './rules.ts';

/** Credentials of an app, as Xiaomi's console issues them. */
export interface XiaomiApp {
  appId: string;
  appSecret: string;
  packageName: string;
}

/** Creates an app. */
export const createXiaomiApp = (): XiaomiApp => ({
  appId: String(randomInt(100_000_000, 1_000_000_000)),
  appSecret: randomBytes(16).toString('hex'),
  packageName: 'com.example.app',
});

export interface XiaomiGatewayOptions extends SandboxOptions, Omit<XiaomiApp, 'appId'> {
  /** Categories of the console; absent: any is accepted. */
  channels?: readonly string[];
  /** Whether the app uses the new categories: messages without one are refused. */
  onlyChannels?: boolean;
  /** Devices per day in each category; absent: unlimited. */
  devicesPerDay?: number;
  /** Absent: unlimited. */
  requestsPerSecond?: number;
}

/** Message with the bits of its requested receipt types. */
interface XiaomiMessage extends ReceiptRequest {
  type: number;
}

export interface XiaomiGateway extends SandboxGateway {
  /** Ids for which the whole request is refused with 66007. `deadTokens` are listed in `bad_regids`. */
  readonly illegalTokens: Set<string>;
  /** Ids for which the whole request is refused with 65003. */
  readonly offlineTokens: Set<string>;
  /**
   * Sends receipts of one type (1 delivered, 2 clicked, 16 target invalid, 32 disabled, 64 filtered, 128 day total) for
   * these devices to the callers that requested that type with a message; returns the HTTP statuses, one per message.
   */
  sendReceipt(type: number, tokens: readonly string[], barStatus?: string): Promise<number[]>;
}

const path = '/v3/message/regid';

/** Starts the gateway; resolves when it listens. */
export async function startXiaomiGateway(options: XiaomiGatewayOptions): Promise<XiaomiGateway> {
  const illegalTokens = new Set<string>();
  const offlineTokens = new Set<string>();
  const receipts = new ReceiptLog<XiaomiMessage>();
  const gateway = await startGateway(
    options,
    (state) => new XiaomiRules(options, { ...state, illegalTokens, offlineTokens, receipts }),
  );
  return Object.assign(gateway, {
    illegalTokens,
    offlineTokens,
    sendReceipt: (type: number, tokens: readonly string[], barStatus = 'Enable') =>
      receipts.send(tokens, (message, targets) =>
        (message.type & type) === 0 ? null : receiptOf(message, { type, targets, barStatus }),
      ),
  });
}

/** Builds a form with one field, JSON by message id (protocol/xiaomi.md#receipts). */
function receiptOf(
  { id, param }: ReceiptRequest,
  { type, targets, barStatus }: { type: number; targets: string[]; barStatus: string },
): ReceiptPost {
  const receipt = {
    param,
    type,
    targets: targets.join(','),
    jobkey: param,
    barStatus,
    timestamp: systemClock.now(),
  };
  return {
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ data: JSON.stringify({ [id]: receipt }) }).toString(),
  };
}

interface XiaomiState extends GatewayState {
  illegalTokens: ReadonlySet<string>;
  offlineTokens: ReadonlySet<string>;
  receipts: ReceiptLog<XiaomiMessage>;
}

class XiaomiRules implements GatewayRules {
  readonly successes;
  readonly #options: XiaomiGatewayOptions;
  readonly #state: XiaomiState;
  readonly #sentToday = new Map<string, number>();
  #second = { startMs: 0, requests: 0 };
  #messages = 0;

  constructor(options: XiaomiGatewayOptions, state: XiaomiState) {
    this.#options = options;
    this.#state = state;
    const data = { id: 'sdm000000000001b', day_quota: '10000', day_acked: '1000' };
    this.successes = [{ path, body: okBody(data, 1000) }];
  }

  targetsOf(call: SandboxCall): { tokens: readonly string[] } {
    return { tokens: regIdsOf(formIn(call)) };
  }

  handle(call: SandboxCall): SandboxReply {
    if (call.path !== path || call.method !== 'POST')
      return { status: 404, violation: `${call.method} ${call.path}` };
    if (call.headers.authorization !== `key=${this.#options.appSecret}`) return refusal(21301, 'auth failed');
    if (!/^application\/x-www-form-urlencoded; ?charset=utf-8$/i.test(call.headers['content-type'] ?? ''))
      return { ...refusal(10008, 'content type'), violation: 'a body that is not a form in UTF-8' };
    const form = formIn(call);
    const fault = faultOf(form);
    if (fault) return { ...refusal(fault.code, fault.violation), violation: fault.violation };
    if (form.get('restricted_package_name') !== this.#options.packageName)
      return refusal(22022, 'bad package name');
    const channel = form.get('extra.channel_id');
    if (!this.#isChannel(channel)) return refusal(27001, 'invalid channel info!');
    if (this.#isTooFast())
      return { ...refusal(200002, 'qps over quota'), violation: 'too many requests in a second' };
    return this.#send(form, channel ?? '');
  }

  forget(): void {
    this.#state.receipts.clear();
  }

  #isChannel(channel: string | null): boolean {
    const { channels, onlyChannels = false } = this.#options;
    return channel === null ? !onlyChannels : (channels?.includes(channel) ?? true);
  }

  /** Counts requests per second of the gateway's clock. */
  #isTooFast(): boolean {
    const startMs = Math.floor(this.#state.nowMs() / 1000);
    if (this.#second.startMs !== startMs) this.#second = { startMs, requests: 0 };
    this.#second.requests += 1;
    return this.#second.requests > (this.#options.requestsPerSecond ?? Number.POSITIVE_INFINITY);
  }

  #send(form: URLSearchParams, channel: string): SandboxReply {
    const { deadTokens, illegalTokens, offlineTokens } = this.#state;
    const targets = regIdsOf(form);
    if (targets.some((token) => illegalTokens.has(token))) return refusal(66007, 'illegal regid');
    if (targets.some((token) => offlineTokens.has(token))) return refusal(65003, 'device not found');
    const bad = targets.filter((token) => deadTokens.has(token));
    const accepted = targets.filter((token) => !deadTokens.has(token));
    if (accepted.length === 0) return refusal(20301, 'No valid targets!');
    const sent = this.#sentToday.get(channel) ?? 0;
    const quota = this.#options.devicesPerDay ?? 10_000;
    if (this.#options.devicesPerDay !== undefined && sent >= quota)
      return refusal(200001, `exceed quota, quota: ${quota}, have acked: ${sent}`);
    this.#sentToday.set(channel, sent + accepted.length);
    this.#messages += 1;
    const id = `sdm${String(this.#messages).padStart(12, '0')}b`;
    this.#logReceiptRequest(id, accepted, form);
    const data = { id, day_quota: String(quota), day_acked: String(sent) };
    return ok(bad.length === 0 ? data : { ...data, bad_regids: bad.join(',') }, accepted);
  }

  #logReceiptRequest(id: string, accepted: string[], form: URLSearchParams): void {
    const callback = form.get('extra.callback');
    if (callback === null) return;
    const param = form.get('extra.callback.param') ?? '';
    const type = Number(form.get('extra.callback.type') ?? 3);
    this.#state.receipts.add({ id, tokens: new Set(accepted), callback, param, type });
  }
}

const ok = (data: Record<string, string>, accepted: string[]): SandboxReply => ({
  status: 200,
  body: okBody(data, accepted.length),
  accepted,
});

const okBody = (data: Record<string, string>, devices: number) => ({
  result: 'ok',
  trace_id: `Xdm${data.id}`,
  code: 0,
  data,
  description: '成功',
  info: `Received push messages for ${devices} REGID`,
});

const refusal = (code: number, reason: string): SandboxReply => ({
  status: 200,
  body: { result: 'error', reason, trace_id: 'Xcm00000000000000', code, description: '发送消息失败' },
});
