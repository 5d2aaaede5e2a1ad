/**
 * Xiaomi's push gateway on loopback. It is as strict as the original (protocol/xiaomi.md), its
 * misbehaviour can be configured, and it sends receipts.
 */

import { randomBytes, randomInt } from 'node:crypto';
import { systemClock } from '../../../../shared/clock.ts';
import {
  formIn,
  type GatewayRules,
  type GatewayState,
  ReceiptLog,
  type ReceiptPost,
  type ReceiptRequest,
  type SandboxCall,
  type SandboxGateway,
  type SandboxOptions,
  type SandboxReply,
  startGateway,
} from '../../http/server.ts';

/** Rules of Xiaomi for a form (protocol/xiaomi.md#fields). Independent of the connector's code. */

/** Broken rule of a request, with the gateway's code for it. */
export interface Fault {
  code: number;
  violation: string;
}

const plainFields = new Set([
  ...[
    'registration_id',
    'restricted_package_name',
    'title',
    'description',
    'payload',
    'pass_through',
  ],
  ...['notify_type', 'notify_id', 'time_to_live', 'time_to_send'],
]);

const knownExtras = new Set([
  ...[
    'channel_id',
    'notify_effect',
    'intent_uri',
    'web_uri',
    'notify_foreground',
    'sound_uri',
    'badge',
  ],
  ...['only_send_once', 'jobkey', 'flow_control', 'callback', 'callback.param', 'callback.type'],
  ...['template_id', 'template_param'],
]);

const maxTargets = 1000;
const receiptBits = 1 | 2 | 16 | 32 | 64 | 128 | 1024;

const fault = (code: number, violation: string): Fault => ({ code, violation });
const lengthOf = (text: string | null): number => [...(text ?? '')].length;
const isInt = (text: string, from: number, to: number): boolean =>
  /^-?\d{1,15}$/.test(text) && Number(text) >= from && Number(text) <= to;

/** Returns the registration ids in a form, without checking them. */
export function regIdsOf(form: URLSearchParams): string[] {
  const text = form.get('registration_id') ?? '';
  return text === '' ? [] : text.split(',');
}

/** Returns the first rule that a form breaks, or null if the rules are kept. */
export function faultOf(form: URLSearchParams): Fault | null {
  return (
    namesFault(form) ??
    targetsFault(form) ??
    textsFault(form) ??
    numbersFault(form) ??
    effectFault(form) ??
    templateFault(form) ??
    extrasFault(form)
  );
}

function namesFault(form: URLSearchParams): Fault | null {
  const names = [...form.keys()];
  if (new Set(names).size < names.length) return fault(10008, 'a field twice');
  const unknownField = names.find((name) => !plainFields.has(name) && !name.startsWith('extra.'));
  return unknownField === undefined
    ? null
    : fault(10008, `an unknown field ${unknownField.slice(0, 40)}`);
}

function targetsFault(form: URLSearchParams): Fault | null {
  const targets = regIdsOf(form);
  if (targets.length === 0) return fault(10016, 'a request without devices');
  if (targets.length > maxTargets) return fault(10017, `${targets.length} devices in a request`);
  if (new Set(targets).size < targets.length) return fault(10017, 'a device twice in a request');
  // An unescaped plus sign arrives as a blank.
  const hasInvalidId = targets.some((target) => !/^[A-Za-z0-9+/=_-]{10,200}$/.test(target));
  if (hasInvalidId) return fault(66007, 'an invalid registration id');
  const packages = (form.get('restricted_package_name') ?? '').split(',');
  return packages.some((name) => name === '' || Buffer.byteLength(name) > 128)
    ? fault(10016, 'no package name, or one of more than 128 bytes')
    : null;
}

function textsFault(form: URLSearchParams): Fault | null {
  if (!/^[01]$/.test(form.get('pass_through') ?? ''))
    return fault(10017, 'pass_through is neither 0 nor 1');
  if (Buffer.byteLength(form.get('payload') ?? '') > 4096)
    return fault(65009, 'a payload of more than 4096 bytes');
  if (form.get('pass_through') === '1')
    return form.get('payload') ? null : fault(10016, 'a pass-through message without payload');
  for (const [name, below] of [
    ['title', 50],
    ['description', 128],
  ] as const) {
    const value = form.get(name);
    if ((value ?? '').trim() === '') return fault(10041, `no ${name}`);
    if (lengthOf(value) >= below) return fault(10041, `a ${name} of ${lengthOf(value)} characters`);
  }
  return null;
}

function numbersFault(form: URLSearchParams): Fault | null {
  for (const [name, from, to] of [
    ['notify_type', -1, 7],
    ['notify_id', 0, 2_147_483_647],
    ['time_to_live', 1, 14 * 86_400_000],
    ['time_to_send', 0, 9_999_999_999_999],
  ] as const) {
    const value = form.get(name);
    if (value !== null && !isInt(value, from, to))
      return fault(10017, `${name} is ${value.slice(0, 20)}`);
  }
  return null;
}

/**
 * Checks the effect of a tap. A notification without an effect was a "custom" notification, which
 * Xiaomi ended in 2024 (protocol/xiaomi.md#what-a-tap-does).
 */
function effectFault(form: URLSearchParams): Fault | null {
  if (form.get('pass_through') === '1') return null;
  const effect = form.get('extra.notify_effect') ?? '';
  if (!/^[123]$/.test(effect)) return fault(10017, 'a notification without notify_effect');
  if (effect === '2' && !form.get('extra.intent_uri')) return fault(10017, 'no intent_uri');
  return effect === '3' && !form.get('extra.web_uri') ? fault(10017, 'no web_uri') : null;
}

/** Checks the fields of a template (protocol/xiaomi.md#templates). */
function templateFault(form: URLSearchParams): Fault | null {
  const id = form.get('extra.template_id');
  const param = form.get('extra.template_param');
  if (id === null && param === null) return null;
  if (!id || param === null || !form.get('extra.channel_id'))
    return fault(27001, 'half a template');
  try {
    const values: unknown[] = Object.values(JSON.parse(param));
    const isRight = (value: unknown) =>
      typeof value === 'string' &&
      value.trim() !== '' &&
      lengthOf(value) <= 128 &&
      !/[\p{So}\p{Cn}]/u.test(value);
    return values.length <= 9 && values.every(isRight)
      ? null
      : fault(10017, 'a wrong value of a template');
  } catch {
    return fault(10017, 'a template_param that is not JSON');
  }
}

function extrasFault(form: URLSearchParams): Fault | null {
  const extras = [...form].flatMap(([name, value]): [string, string][] =>
    name.startsWith('extra.') ? [[name.slice(6), value]] : [],
  );
  const own = extras.filter(([name]) => !knownExtras.has(name) && !name.startsWith('miui.focus.'));
  if (own.length > 10) return fault(65014, `${own.length} extras`);
  const chars = own.reduce((sum, [name, value]) => sum + lengthOf(name) + lengthOf(value), 0);
  if (chars > 1024) return fault(65015, `extras of ${chars} characters`);
  const jobkey = form.get('extra.jobkey');
  if (jobkey !== null && !/^[0-9A-Za-z-][0-9A-Za-z_-]{0,19}$/.test(jobkey))
    return fault(10017, 'a bad jobkey');
  return callbackFault(form);
}

function callbackFault(form: URLSearchParams): Fault | null {
  const url = form.get('extra.callback');
  const param = form.get('extra.callback.param') ?? '';
  const type = Number(form.get('extra.callback.type') ?? 3);
  if (url === null) return param === '' ? null : fault(10008, 'a callback parameter without a URL');
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    return fault(65038, 'an invalid callback URL');
  if (url.length > 1024) return fault(65037, 'a callback URL of more than 1024 characters');
  if (Buffer.byteLength(param) > 64)
    return fault(65036, 'a callback parameter of more than 64 bytes');
  return Number.isInteger(type) && type > 0 && (type & ~receiptBits) === 0
    ? null
    : fault(10017, `callback.type is ${type}`);
}

/** Credentials of an app as Xiaomi's console issues them. */
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
  /** Categories of the console. If absent, all categories are accepted. */
  channels?: readonly string[];
  /** True if the app uses the new categories. Messages without a category are then refused. */
  onlyChannels?: boolean;
  /** Maximum devices per day in each category. Unlimited by default. */
  devicesPerDay?: number;
  /** Unlimited by default. */
  requestsPerSecond?: number;
}

/** Message with the requested receipt types as bits. */
interface XiaomiMessage extends ReceiptRequest {
  type: number;
}

export interface XiaomiGateway extends SandboxGateway {
  /**
   * Ids for which the whole request is refused with 66007. `deadTokens` are listed in `bad_regids`
   * instead.
   */
  readonly illegalTokens: Set<string>;
  /** Ids for which the whole request is refused with 65003. */
  readonly offlineTokens: Set<string>;
  /**
   * Sends receipts of one type for these devices, if their message requested this type. Types: 1
   * delivered, 2 clicked, 16 invalid target, 32 disabled, 64 filtered, 128 daily total. Returns the
   * HTTP statuses, one per message.
   */
  sendReceipt(type: number, tokens: readonly string[], barStatus?: string): Promise<number[]>;
}

const path = '/v3/message/regid';
const recallPath = '/v1/message/regid/revoke';

const recalledIdsOf = (form: URLSearchParams): string[] =>
  (form.get('registration_ids') ?? '').split(',').filter(Boolean);

/** Returns the first rule that a recall breaks (protocol/xiaomi.md#recall), or null. */
function recallFault(form: URLSearchParams): Fault | null {
  const names = [...form.keys()].sort().join(' ');
  if (names !== 'notify_id registration_ids restricted_package_name')
    return fault(10008, `the fields ${names.slice(0, 80)}`);
  const targets = recalledIdsOf(form);
  if (targets.length === 0) return fault(10016, 'a recall without devices');
  if (new Set(targets).size < targets.length || targets.length > maxTargets)
    return fault(10017, 'a device twice, or too many devices');
  return isInt(form.get('notify_id') ?? '', 0, 2_147_483_647)
    ? null
    : fault(10017, 'notify_id is no number');
}

/** Starts the gateway. Resolves when it listens. */
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

/**
 * Builds a form with one field, which contains JSON by message id (protocol/xiaomi.md#receipts).
 */
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
    const form = formIn(call);
    return { tokens: call.path === recallPath ? recalledIdsOf(form) : regIdsOf(form) };
  }

  handle(call: SandboxCall): SandboxReply {
    const isRecall = call.path === recallPath;
    if ((call.path !== path && !isRecall) || call.method !== 'POST')
      return { status: 404, violation: `${call.method} ${call.path}` };
    if (call.headers.authorization !== `key=${this.#options.appSecret}`)
      return refusal(21301, 'auth failed');
    if (
      !/^application\/x-www-form-urlencoded; ?charset=utf-8$/i.test(
        call.headers['content-type'] ?? '',
      )
    )
      return { ...refusal(10008, 'content type'), violation: 'a body that is not a form in UTF-8' };
    const form = formIn(call);
    const fault = isRecall ? recallFault(form) : faultOf(form);
    if (fault) return { ...refusal(fault.code, fault.violation), violation: fault.violation };
    if (form.get('restricted_package_name') !== this.#options.packageName)
      return refusal(22022, 'bad package name');
    if (isRecall) return this.#recall(form);
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

  /** Counts requests per second by the gateway's clock. Returns true above the limit. */
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
    if (targets.some((token) => offlineTokens.has(token)))
      return refusal(65003, 'device not found');
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

  /** Recalls a notification. Registration ids that are not valid are listed like in a send. */
  #recall(form: URLSearchParams): SandboxReply {
    const targets = recalledIdsOf(form);
    const bad = targets.filter((token) => this.#state.deadTokens.has(token));
    const accepted = targets.filter((token) => !this.#state.deadTokens.has(token));
    if (accepted.length === 0) return refusal(20301, 'No valid targets!');
    return ok(
      { id: 'recall', ...(bad.length === 0 ? {} : { bad_regids: bad.join(',') }) },
      accepted,
    );
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
  body: {
    result: 'error',
    reason,
    trace_id: 'Xcm00000000000000',
    code,
    description: '发送消息失败',
  },
});
