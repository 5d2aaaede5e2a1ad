/**
 * Meizu's push gateway on loopback. It is as strict as the original (protocol/meizu.md), its
 * misbehaviour can be configured, and it sends receipts.
 */

import { createHash, randomBytes, randomInt } from 'node:crypto';
import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';
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

// Rules of Meizu for a call (protocol/meizu.md#signature, protocol/meizu.md#message). Independent
// of the connector's code.

const knownFields = ['appId', 'pushIds', 'messageJson', 'sign', 'restrictedPackageNames'];
const maxTargets = 100;

/** Computes the expected signature of a form from its unescaped values. */
export function expectedSign(form: URLSearchParams, appSecret: string): string {
  const names = [...form.keys()].filter((name) => name !== 'sign').sort();
  const text = names.map((name) => `${name}=${form.get(name)}`).join('');
  return createHash('md5')
    .update(text + appSecret, 'utf8')
    .digest('hex');
}

export function pushIdsOf(form: URLSearchParams): string[] {
  const text = form.get('pushIds') ?? '';
  return text === '' ? [] : text.split(',');
}

/** Parses the message of a form; null if it is not a JSON object. */
export function messageOf(form: URLSearchParams): JsonObject | null {
  try {
    const value: unknown = JSON.parse(form.get('messageJson') ?? '');
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

/**
 * Returns a description of the first rule that a client must never break, or null if the rules are
 * kept.
 */
export function violationOf(form: URLSearchParams, message: JsonObject | null): string | null {
  const names = [...form.keys()];
  const unknownField = names.find((name) => !knownFields.includes(name));
  if (unknownField !== undefined) return `an unknown field ${unknownField.slice(0, 40)}`;
  if (new Set(names).size < names.length) return 'a field twice';
  const targets = pushIdsOf(form);
  if (targets.length === 0 || targets.length > maxTargets)
    return `${targets.length} devices in a request`;
  if (new Set(targets).size < targets.length) return 'a device twice in a request';
  if (message === null) return 'a message that is not a JSON object';
  if (Buffer.byteLength(form.get('messageJson') ?? '') > 5000)
    return 'a message of more than 5000 bytes';
  return (
    barProblem(message) ?? clickProblem(message) ?? timeProblem(message) ?? extraProblem(message)
  );
}

const partOf = (message: JsonObject, name: string): JsonObject => {
  const part = message[name];
  return isJsonObject(part) ? part : {};
};
const lengthOf = (value: Json | undefined): number =>
  typeof value === 'string' && value.trim() !== '' ? [...value].length : 0;
const isOneOf = (value: Json | undefined, ...values: Json[]): boolean =>
  value === undefined || values.includes(value);

function barProblem(message: JsonObject): string | null {
  const { content, noticeBarType, noticeMsgType, title } = partOf(message, 'noticeBarInfo');
  if (lengthOf(title) < 1 || lengthOf(title) > 32)
    return `a title of ${lengthOf(title)} characters`;
  if (lengthOf(content) < 1 || lengthOf(content) > 100)
    return `a content of ${lengthOf(content)} characters`;
  if (!isOneOf(noticeMsgType, 0, 1) || !isOneOf(noticeBarType, 0, 2))
    return 'an unknown type of notice';
  const { noticeExpandContent, noticeExpandImgUrl, noticeExpandType } = partOf(
    message,
    'noticeExpandInfo',
  );
  if (!isOneOf(noticeExpandType, 0, 1, 2)) return 'an unknown type of expansion';
  if (noticeExpandType === 1 && lengthOf(noticeExpandContent) === 0)
    return 'an expansion without its text';
  return noticeExpandType === 2 && lengthOf(noticeExpandImgUrl) === 0
    ? 'an expansion without its image'
    : null;
}

function clickProblem(message: JsonObject): string | null {
  const { activity, clickType, customAttribute, parameters, url } = partOf(
    message,
    'clickTypeInfo',
  );
  if (!isOneOf(clickType, 0, 1, 2)) return `clickType ${JSON.stringify(clickType)}`;
  if (clickType === 1 && lengthOf(activity) === 0) return 'an activity without its name';
  if (clickType === 2 && lengthOf(url) === 0) return 'a URI that is missing';
  if (parameters !== undefined && !isJsonObject(parameters))
    return 'parameters that are not an object';
  return typeof customAttribute === 'string' && Buffer.byteLength(customAttribute) > 1000
    ? 'a customAttribute of more than 1000 bytes'
    : null;
}

function timeProblem(message: JsonObject): string | null {
  const { offLine, validTime = 24 } = partOf(message, 'pushTimeInfo');
  if (!isOneOf(offLine, 0, 1)) return 'offLine is neither 0 nor 1';
  if (
    typeof validTime !== 'number' ||
    !Number.isInteger(validTime) ||
    validTime < 1 ||
    validTime > 72
  )
    return `a validTime of ${JSON.stringify(validTime)} hours`;
  const { notifyKey } = partOf(message, 'advanceInfo');
  return notifyKey === undefined ||
    (typeof notifyKey === 'string' && /^[0-9A-Za-z_-]{1,8}$/.test(notifyKey))
    ? null
    : 'a bad notifyKey';
}

function extraProblem(message: JsonObject): string | null {
  const { callback, 'callback.param': param, 'callback.type': type } = partOf(message, 'extra');
  if (callback === undefined) return null;
  if (typeof callback !== 'string' || !URL.canParse(callback) || Buffer.byteLength(callback) > 128)
    return 'a URL for receipts that is invalid or has more than 128 bytes';
  if (typeof param === 'string' && Buffer.byteLength(param) > 64)
    return 'a callback.param of more than 64 bytes';
  return isOneOf(type, '1', '2', '3') ? null : 'an unknown callback.type';
}

/**
 * Credentials of an app as Meizu's console issues them, and the token for receipts that is entered
 * there.
 */
export interface MeizuApp {
  appId: string;
  appSecret: string;
  receiptToken: string;
}

/** Creates an app. */
export const createMeizuApp = (): MeizuApp => ({
  appId: String(randomInt(100_000_000, 1_000_000_000)),
  appSecret: randomBytes(16).toString('hex'),
  receiptToken: randomBytes(16).toString('hex'),
});

export interface MeizuGatewayOptions extends SandboxOptions, Omit<MeizuApp, 'receiptToken'> {
  /** Token that was entered in the console with the URL for receipts. Each receipt contains it. */
  receiptToken?: string;
  /** Maximum devices per day, separately for public and private messages. Unlimited by default. */
  devicesPerDay?: number;
  /** Unlimited by default. */
  devicesPerSecond?: number;
  /** Messages that a device shows per minute, 5 in the original. Unlimited by default. */
  messagesPerMinute?: number;
}

/** Message with the requested receipt types as bits. */
interface MeizuMessage extends ReceiptRequest {
  type: number;
}

export interface MeizuGateway extends SandboxGateway {
  /** Codes for single devices in a successful response. `deadTokens` get 110002. */
  readonly targetCodes: Map<string, number>;
  /**
   * Sends receipts of one type (1 arrived, 2 clicked) for these devices, if their message requested
   * this type. Returns the HTTP statuses, one per message.
   */
  sendReceipt(type: number, tokens: readonly string[], accessToken?: string): Promise<number[]>;
}

const path = '/garcia/api/server/push/varnished/pushByPushId';

/** Starts the gateway. Resolves when it listens. */
export async function startMeizuGateway(options: MeizuGatewayOptions): Promise<MeizuGateway> {
  const targetCodes = new Map<string, number>();
  const receipts = new ReceiptLog<MeizuMessage>();
  const gateway = await startGateway(
    options,
    (state) => new MeizuRules(options, { ...state, targetCodes, receipts }),
  );
  return Object.assign(gateway, {
    targetCodes,
    sendReceipt: (
      type: number,
      tokens: readonly string[],
      accessToken = options.receiptToken ?? '',
    ) =>
      receipts.send(tokens, (message, targets) =>
        (message.type & type) === 0 ? null : receiptOf(message, { type, targets, accessToken }),
      ),
  });
}

/**
 * Builds a form with the receipts as JSON by message and type, and the token of the console
 * (protocol/meizu.md#receipts).
 */
function receiptOf(
  { id, param }: ReceiptRequest,
  { type, targets, accessToken }: { type: number; targets: string[]; accessToken: string },
): ReceiptPost {
  const cb = JSON.stringify({ [`${id}-${type}`]: { param, type, targets } });
  return {
    headers: { 'content-type': 'application/x-www-form-urlencoded;charset=UTF-8' },
    body: new URLSearchParams({ cb, access_token: accessToken }).toString(),
  };
}

interface MeizuState extends GatewayState {
  targetCodes: ReadonlyMap<string, number>;
  receipts: ReceiptLog<MeizuMessage>;
}

class MeizuRules implements GatewayRules {
  readonly successes = [
    { path, body: { code: '200', message: '', msgId: 'c2ee5c3b-000000000001', value: {} } },
  ];
  readonly #options: MeizuGatewayOptions;
  readonly #state: MeizuState;
  readonly #sentToday = new Map<string, number>();
  readonly #deliveryTimesMs = new Map<string, number[]>();
  #second = { number: 0, devices: 0 };
  #messages = 0;

  constructor(options: MeizuGatewayOptions, state: MeizuState) {
    this.#options = options;
    this.#state = state;
  }

  targetsOf(call: SandboxCall): { tokens: readonly string[] } {
    return { tokens: pushIdsOf(formIn(call)) };
  }

  handle(call: SandboxCall): SandboxReply {
    const { appId, appSecret } = this.#options;
    if (call.path !== path || call.method !== 'POST')
      return { status: 404, violation: `${call.method} ${call.path}` };
    if (
      !/^application\/x-www-form-urlencoded; ?charset=utf-8$/i.test(
        call.headers['content-type'] ?? '',
      )
    )
      return {
        ...refusal('1005', 'content type'),
        violation: 'a body that is not a form in UTF-8',
      };
    const form = formIn(call);
    if (form.get('appId') !== appId) return refusal('110000', 'appId不合法');
    if (form.get('sign') !== expectedSign(form, appSecret)) return refusal('1006', '签名认证失败');
    const message = messageOf(form);
    const violation = violationOf(form, message);
    if (violation !== null || message === null)
      return { ...refusal('1005', '参数错误'), violation: violation ?? '' };
    return this.#send(pushIdsOf(form), message);
  }

  forget(): void {
    this.#state.receipts.clear();
  }

  #send(targets: string[], message: JsonObject): SandboxReply {
    const { devicesPerDay = Number.POSITIVE_INFINITY } = this.#options;
    if (this.#isTooFast(targets.length))
      return {
        ...refusal('110010', '应用请求频率超过限制'),
        violation: 'too many devices in a second',
      };
    const bar = message.noticeBarInfo;
    const messageClass = isJsonObject(bar) && bar.noticeMsgType === 1 ? 'private' : 'public';
    const sent = this.#sentToday.get(messageClass) ?? 0;
    if (sent >= devicesPerDay) return refusal('110019', '超过该应用的每日推送数量限制');
    const value: Record<string, string[]> = {};
    const accepted: string[] = [];
    for (const token of targets) {
      const code = this.#codeOf(token);
      if (code === null) accepted.push(token);
      else value[code] = [...(value[code] ?? []), token];
    }
    this.#sentToday.set(messageClass, sent + accepted.length);
    this.#messages += 1;
    const msgId = `c2ee5c3b-${String(this.#messages).padStart(12, '0')}`;
    this.#logReceiptRequest(msgId, accepted, message);
    return { status: 200, body: { code: '200', message: '', msgId, value }, accepted };
  }

  /** Returns the code of a device whose message fails; null if it succeeds. */
  #codeOf(token: string): number | null {
    const code = this.#state.targetCodes.get(token);
    if (code !== undefined) return code;
    if (this.#state.deadTokens.has(token)) return 110002;
    const { messagesPerMinute = Number.POSITIVE_INFINITY } = this.#options;
    if (messagesPerMinute === Number.POSITIVE_INFINITY) return null;
    const nowMs = this.#state.nowMs();
    const lastMinute = (this.#deliveryTimesMs.get(token) ?? []).filter(
      (atMs) => atMs > nowMs - 60_000,
    );
    this.#deliveryTimesMs.set(token, lastMinute);
    if (lastMinute.length >= messagesPerMinute) return 520;
    lastMinute.push(nowMs);
    return null;
  }

  /** Counts devices per second by the gateway's clock. Returns true above the limit. */
  #isTooFast(devices: number): boolean {
    const number = Math.floor(this.#state.nowMs() / 1000);
    if (this.#second.number !== number) this.#second = { number, devices: 0 };
    this.#second.devices += devices;
    return this.#second.devices > (this.#options.devicesPerSecond ?? Number.POSITIVE_INFINITY);
  }

  #logReceiptRequest(id: string, accepted: string[], { extra }: JsonObject): void {
    if (!isJsonObject(extra) || typeof extra.callback !== 'string') return;
    const { callback, 'callback.param': param, 'callback.type': type = 3 } = extra;
    this.#state.receipts.add({
      id,
      tokens: new Set(accepted),
      callback,
      param: typeof param === 'string' ? param : '',
      type: Number(type),
    });
  }
}

const refusal = (code: string, message: string): SandboxReply => ({
  status: 200,
  body: { code, message, value: '', redirect: '' },
});
