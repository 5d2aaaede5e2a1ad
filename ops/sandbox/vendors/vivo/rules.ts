/** Rules of vivo for a message (protocol/vivo.md#message). Independent of the connector's code. */

import { createHash } from 'node:crypto';
import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';
import {
  type GatewayRules,
  type GatewayState,
  objectIn,
  type ReceiptLog,
  type SandboxCall,
  type SandboxReply,
  type TokenIssuer,
} from '../../http/server.ts';
import type { Success } from '../../kit/unchecked.ts';

/** Broken rule of a request, with the gateway's code for it. */
interface Fault {
  code: number;
  violation: string;
}

const fields = new Set([
  ...[
    'appId',
    'regId',
    'notifyType',
    'title',
    'content',
    'timeToLive',
    'skipType',
    'skipContent',
    'category',
  ],
  ...[
    'networkType',
    'classification',
    'clientCustomMap',
    'requestId',
    'pushMode',
    'notifyId',
    'profileId',
  ],
  ...['sendOnline', 'foregroundShow', 'addBadge', 'auditReview', 'liveMessage', 'extra'],
]);

/** Categories with their class: 1 for system, 0 for operation. */
const categories = new Map([
  ...['IM', 'ACCOUNT', 'TODO', 'DEVICE_REMINDER', 'ORDER', 'SUBSCRIPTION'].map(
    (name) => [name, 1] as const,
  ),
  ...['NEWS', 'CONTENT', 'MARKETING', 'SOCIAL'].map((name) => [name, 0] as const),
]);

const fault = (code: number, violation: string): Fault => ({ code, violation });
const isInt = (value: Json | undefined, from: number, to: number): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to;
const lengthOf = (value: Json | undefined): number =>
  typeof value === 'string'
    ? [...value].length
    : value === undefined
      ? 0
      : JSON.stringify(value).length;

/**
 * Returns the first rule that a message breaks, or null if the rules are kept. `isList` is true if
 * the message is saved for lists.
 */
export function messageFault(message: JsonObject, isList: boolean): Fault | null {
  const unknownField = Object.keys(message).find(
    (name) => !fields.has(name) || (isList && (name === 'regId' || name === 'profileId')),
  );
  if (unknownField !== undefined)
    return fault(10304, `an unknown field ${unknownField.slice(0, 40)}`);
  return requestFault(message) ?? textFault(message) ?? numberFault(message) ?? extraFault(message);
}

/** Checks the id of a call. */
function requestFault({ requestId }: JsonObject): Fault | null {
  if (typeof requestId !== 'string' || requestId === '') return fault(10352, 'no requestId');
  return lengthOf(requestId) > 64 ? fault(10353, 'a requestId of more than 64 characters') : null;
}

function textFault({ content, skipContent, skipType, title }: JsonObject): Fault | null {
  if (typeof title !== 'string' || title.trim() === '') return fault(10055, 'no title');
  if (lengthOf(title) > 40) return fault(10056, `a title of ${lengthOf(title)} characters`);
  if (typeof content !== 'string' || content.trim() === '') return fault(10057, 'no content');
  if (lengthOf(content) > 100) return fault(10058, `a content of ${lengthOf(content)} characters`);
  if (!isInt(skipType, 1, 4)) return fault(10059, `skipType is ${String(skipType)}`);
  const isBare = typeof skipContent !== 'string' || skipContent === '';
  if ((skipType === 2 || skipType === 4) && isBare) return fault(10060, 'no skipContent');
  return lengthOf(skipContent) > 1024
    ? fault(10060, 'a skipContent of more than 1024 characters')
    : null;
}

function numberFault(message: JsonObject): Fault | null {
  const { category, classification, clientCustomMap: map, timeToLive } = message;
  if (!isInt(message.notifyType, 1, 4)) return fault(10054, 'a bad notifyType');
  if (timeToLive !== undefined && !isInt(timeToLive, 60, 86_400))
    return fault(10065, 'a bad timeToLive');
  for (const [name, from, to] of [
    ['networkType', -1, 1],
    ['classification', 0, 1],
    ['pushMode', 0, 1],
    ['notifyId', 1, 2_147_483_647],
  ] as const)
    if (message[name] !== undefined && !isInt(message[name], from, to))
      return fault(10067, `a bad ${name}`);
  const ownClass = categories.get(String(category));
  if (category !== undefined && ownClass === undefined) return fault(10096, 'a bad category');
  if (category !== undefined && classification !== undefined && classification !== ownClass)
    return fault(10097, 'a classification that contradicts the category');
  if (map === undefined) return null;
  const isTexts =
    isJsonObject(map) && Object.values(map).every((value) => typeof value === 'string');
  return isTexts && Object.entries(map).flat().join('').length <= 1024
    ? null
    : fault(
        10095,
        'a clientCustomMap with other values than texts, or of more than 1024 characters',
      );
}

function extraFault({ extra, pushMode }: JsonObject): Fault | null {
  if (extra === undefined) return null;
  if (!isJsonObject(extra)) return fault(10305, 'extra is not an object');
  if (lengthOf(extra.callback) > 128)
    return fault(10305, 'a callback URL of more than 128 characters');
  if (lengthOf(extra['callback.param']) > 64)
    return fault(10306, 'a callback parameter of more than 64 characters');
  if (extra.callback !== undefined && !URL.canParse(String(extra.callback)))
    return fault(10305, 'an invalid callback URL');
  return pushMode === 1 && extra.callback !== undefined
    ? fault(10305, 'a callback with a test message')
    : null;
}

/** True if vivo considers a text to be a test (protocol/vivo.md#codes, 10085). */
const looksLikeTest = ({ content }: JsonObject): boolean =>
  typeof content === 'string' &&
  (/^([0-9]+|[A-Za-z]+|[\p{P}\p{S}]+)$/u.test(content) || /测试|[[\]{}]/.test(content));

/** Credentials of an app as vivo's console issues them. */
export interface VivoApp {
  appId: string;
  appKey: string;
  appSecret: string;
}

/** State of the gateway. Tests can change it. */
export interface VivoMemory {
  app: VivoApp;
  tokenIssuer: TokenIssuer;
  /**
   * Statuses of devices that cannot be reached, such as 3 or 5 (protocol/vivo.md#lists).
   * `deadTokens` have status 2.
   */
  statuses: Map<string, number>;
  /** Test devices of the console. Test messages are only sent to these. */
  testDevices: Set<string>;
  /** True if operation messages are refused from 23:00 to 07:00 China time. */
  hasSendingHours: boolean;
  /** True if texts that look like a test are refused. */
  refusesTestTexts: boolean;
  devicesPerSecond: number;
  tokensPerSecond: number;
  /** Maximum devices per day in each class, and maximum saves per day for all classes. */
  operationsPerDay: number;
  systemPerDay: number;
  savesPerDay: number;
  /** Messages with a URL for receipts. */
  receipts: ReceiptLog;
  /** Saved messages by task id. */
  saved: Map<string, JsonObject>;
}

const authPath = '/message/auth';
const maxClockSkewMs = 600_000;
const chinaMs = 8 * 3_600_000;
const systemCategories = new Set([
  'IM',
  'ACCOUNT',
  'TODO',
  'DEVICE_REMINDER',
  'ORDER',
  'SUBSCRIPTION',
]);

/** Rules for the gateway of one app (protocol/vivo.md). */
export class VivoRules implements GatewayRules {
  readonly successes: readonly Success[] = [
    { path: '/message/pushToList', body: okBody({}) },
    {
      path: '/message/saveListPayload',
      body: okBody({ taskId: '1175283746519265280' }),
      isPreparation: true,
    },
    { path: authPath, body: okBody({ authToken: 'x'.repeat(36) }), isPreparation: true },
  ];
  readonly #memory: VivoMemory;
  readonly #state: GatewayState;
  readonly #counts = {
    second: 0,
    devices: 0,
    tokens: 0,
    operation: 0,
    system: 0,
    saves: 0,
    tasks: 0,
  };

  constructor(memory: VivoMemory, state: GatewayState) {
    this.#memory = memory;
    this.#state = state;
  }

  targetsOf(call: SandboxCall): { tokens: readonly string[]; isTokenCall?: boolean } {
    if (call.path === authPath) return { tokens: [], isTokenCall: true };
    const { regId, regIds } = bodyOf(call);
    return { tokens: typeof regId === 'string' ? [regId] : strings(regIds) };
  }

  handle(call: SandboxCall): SandboxReply {
    if (call.method !== 'POST') return { status: 404, violation: `${call.method} ${call.path}` };
    if (!/^application\/json\b/i.test(call.headers['content-type'] ?? ''))
      return violationReply({ code: 10304, violation: 'a body that is not JSON' });
    this.#count();
    const body = bodyOf(call);
    if (call.path === authPath) return this.#grantToken(body);
    const token = call.headers.authtoken;
    if (typeof token !== 'string')
      return { ...refusal(10000), violation: 'a call without authToken' };
    if (this.#memory.tokenIssuer.check(token) !== 'valid') return refusal(10000);
    if (body.appId !== Number(this.#memory.app.appId))
      return { ...refusal(10094), violation: 'another appId' };
    if (call.path === '/message/send') return this.#send(body);
    if (call.path === '/message/saveListPayload') return this.#save(body);
    if (call.path === '/message/pushToList') return this.#push(body);
    return { status: 404, violation: `an unknown call ${call.path}` };
  }

  #count(): void {
    const second = Math.floor(this.#state.nowMs() / 1000);
    if (this.#counts.second !== second)
      Object.assign(this.#counts, { second, devices: 0, tokens: 0 });
  }

  /** Answers the token call (protocol/vivo.md#access-token). */
  #grantToken(body: JsonObject): SandboxReply {
    const { app, tokenIssuer, tokensPerSecond } = this.#memory;
    this.#counts.tokens += 1;
    if (this.#counts.tokens > tokensPerSecond) return refusal(10072);
    const { appId, appKey, sign, timestamp } = body;
    if (typeof appId !== 'number')
      return violationReply({ code: 10200, violation: 'appId is not a number' });
    if (String(appId) !== app.appId) return refusal(10201);
    if (appKey !== app.appKey) return refusal(10203);
    const isTime = typeof timestamp === 'number' && /^\d{13}$/.test(String(timestamp));
    if (!isTime) return violationReply({ code: 10204, violation: 'a bad timestamp' });
    if (Math.abs(timestamp - this.#state.nowMs()) > maxClockSkewMs) return refusal(10207);
    const expectedSign = createHash('md5')
      .update(`${appId}${appKey}${timestamp}`)
      .update(app.appSecret)
      .digest('hex');
    return sign === expectedSign ? ok({ authToken: tokenIssuer.issue().value }) : refusal(10206);
  }

  #send(body: JsonObject): SandboxReply {
    const { regId } = body;
    if (typeof regId !== 'string' || regId === '')
      return violationReply({ code: 10050, violation: 'no regId' });
    const fault = messageFault(body, false);
    if (fault) return violationReply(fault);
    const limit = this.#limit(body, 1);
    if (limit !== null) return refusal(limit);
    const status = this.#statusOf(regId, body);
    if (status !== 0)
      return {
        ...refusal(10302),
        body: { ...resultBody(10302), invalidUser: { userid: regId, status } },
      };
    const taskId = this.#accept(body, [regId]);
    return { ...ok({ taskId }), accepted: [regId] };
  }

  #save(body: JsonObject): SandboxReply {
    const fault = messageFault(body, true);
    if (fault) return violationReply(fault);
    this.#counts.saves += 1;
    if (this.#counts.saves > this.#memory.savesPerDay) return refusal(10252);
    const limit = this.#limit(body, 0);
    if (limit !== null) return refusal(limit);
    const taskId = this.#nextTask();
    this.#memory.saved.set(taskId, body);
    return ok({ taskId });
  }

  #push(body: JsonObject): SandboxReply {
    const fault = listFault(body);
    if (fault) return violationReply(fault);
    const message = this.#memory.saved.get(String(body.taskId));
    if (!message) return refusal(10155);
    const regIds = strings(body.regIds);
    const limit = this.#limit(message, regIds.length);
    if (limit !== null) return refusal(limit);
    const users = regIds.map((userid) => ({ userid, status: this.#statusOf(userid, message) }));
    const accepted = users.filter(({ status }) => status === 0).map(({ userid }) => userid);
    this.#accept(message, accepted, String(body.taskId));
    const invalidUsers = users.filter(({ status }) => status !== 0);
    return { ...ok({ requestId: String(body.requestId), invalidUsers }), accepted };
  }

  forget(): void {
    this.#memory.receipts.clear();
  }

  /**
   * Returns the code of a call that exceeds the rate, the sending hours or the daily quota; null if
   * it is accepted. A save counts as 0 devices.
   */
  #limit(message: JsonObject, devices: number): number | null {
    const { devicesPerSecond, hasSendingHours, operationsPerDay, refusesTestTexts, systemPerDay } =
      this.#memory;
    const counts = this.#counts;
    if (refusesTestTexts && looksLikeTest(message)) return 10085;
    counts.devices += devices;
    if (counts.devices > devicesPerSecond) return 10072;
    if (message.pushMode === 1) return null;
    const isSystem = message.classification === 1 || systemCategories.has(String(message.category));
    const hour = Math.floor(((this.#state.nowMs() + chinaMs) / 3_600_000) % 24);
    if (hasSendingHours && !isSystem && (hour < 7 || hour >= 23)) return 10071;
    const kind = isSystem ? 'system' : 'operation';
    if (counts[kind] + devices > (isSystem ? systemPerDay : operationsPerDay))
      return isSystem ? 10073 : 10070;
    counts[kind] += devices;
    return null;
  }

  #statusOf(token: string, { pushMode }: JsonObject): number {
    if (pushMode === 1 && !this.#memory.testDevices.has(token)) return 4;
    return this.#state.deadTokens.has(token) ? 2 : (this.#memory.statuses.get(token) ?? 0);
  }

  #accept({ extra }: JsonObject, tokens: readonly string[], taskId = this.#nextTask()): string {
    if (isJsonObject(extra) && typeof extra.callback === 'string')
      this.#memory.receipts.add({
        id: taskId,
        tokens: new Set(tokens),
        callback: extra.callback,
        param: String(extra['callback.param'] ?? ''),
      });
    return taskId;
  }

  #nextTask(): string {
    this.#counts.tasks += 1;
    return String(342_982_232_646_000 + this.#counts.tasks);
  }
}

function listFault(body: JsonObject): Fault | null {
  const names = new Set(['appId', 'regIds', 'taskId', 'requestId', 'pushMode']);
  const unknownField = Object.keys(body).find((name) => !names.has(name));
  if (unknownField !== undefined)
    return { code: 10304, violation: `an unknown field ${unknownField.slice(0, 40)}` };
  const regIds = strings(body.regIds);
  if (regIds.length === 0) return { code: 10150, violation: 'no regIds' };
  if (typeof body.taskId !== 'string' || body.taskId === '')
    return { code: 10151, violation: 'no taskId' };
  if (regIds.length < 2 || regIds.length > 1000)
    return { code: 10153, violation: `${regIds.length} devices in a list` };
  if (new Set(regIds).size < regIds.length)
    return { code: 10153, violation: 'a device twice in a list' };
  return requestFault(body);
}

const strings = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];

/** Returns the body. A body that is not a JSON object becomes an empty object, which is refused. */
const bodyOf = (call: SandboxCall): JsonObject => objectIn(call) ?? {};

const resultBody = (result: number) => ({ result, desc: `refused ${result}` });
const okBody = (more: object) => ({ result: 0, desc: '请求成功', ...more });
const ok = (more: object): SandboxReply => ({ status: 200, body: okBody(more) });
const refusal = (result: number): SandboxReply => ({ status: 200, body: resultBody(result) });
const violationReply = ({ code, violation }: Fault): SandboxReply => ({
  ...refusal(code),
  violation,
});
