/**
 * Rules of OPPO for a notification (protocol/oppo.md#single-device, protocol/oppo.md#notification).
 * Independent of the connector's code.
 */

import { createHash } from 'node:crypto';
import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';
import {
  formIn,
  type GatewayRules,
  type GatewayState,
  type ReceiptLog,
  type SandboxCall,
  type SandboxReply,
  type TokenIssuer,
} from '../../http/server.ts';
import type { Success } from '../../kit/unchecked.ts';

const fields = new Set([
  ...[
    'app_message_id',
    'style',
    'title',
    'sub_title',
    'content',
    'click_action_type',
    'notify_level',
  ],
  ...['click_action_activity', 'click_action_url', 'action_parameters', 'off_line', 'off_line_ttl'],
  ...[
    'show_ttl',
    'show_time_type',
    'show_start_time',
    'show_end_time',
    'notify_id',
    'channel_id',
    'category',
  ],
  ...[
    'private_msg_template_id',
    'private_title_parameters',
    'private_content_parameters',
    'call_back_url',
  ],
  ...['call_back_parameter', 'fix_speed', 'fix_speed_rate', 'network_type', 'badge_operation_type'],
  ...['badge_message_count', 'big_picture_id', 'small_picture_id'],
]);

const categories = new Set([
  ...['IM', 'ACCOUNT', 'DEVICE_REMINDER', 'ORDER', 'TODO', 'SUBSCRIPTION'],
  ...['NEWS', 'CONTENT', 'MARKETING', 'SOCIAL'],
]);

const broadcastOnly = new Set(['fix_speed', 'fix_speed_rate', 'big_picture_id']);
const lengthOf = (value: Json | undefined): number =>
  typeof value === 'string' ? [...value].length : 0;
const isWithin = (value: Json | undefined, from: number, to: number): boolean =>
  value === undefined || (typeof value === 'number' && value >= from && value <= to);

/** Maximum lengths of texts in characters. */
const maxLengths: readonly (readonly [string, number])[] = [
  ['title', 50],
  ['sub_title', 10],
  ['click_action_activity', 500],
  ['click_action_url', 2000],
  ['action_parameters', 4000],
  ['call_back_url', 200],
  ['call_back_parameter', 100],
];

/** Returns the first rule that a notification breaks, or null if the rules are kept. */
export function notificationFault(notification: JsonObject, isBroadcast: boolean): string | null {
  const unknownField = Object.keys(notification).find(
    (name) => !fields.has(name) || (!isBroadcast && broadcastOnly.has(name)),
  );
  if (unknownField !== undefined) return `an unknown field ${unknownField.slice(0, 40)}`;
  for (const name of ['title', 'content'])
    if (typeof notification[name] !== 'string' || notification[name].trim() === '')
      return `no ${name}`;
  const long = maxLengths.find(([name, chars]) => lengthOf(notification[name]) > chars);
  if (long) return `a ${long[0]} of ${lengthOf(notification[long[0]])} characters`;
  return (
    styleFault(notification, isBroadcast) ?? clickFault(notification) ?? restFault(notification)
  );
}

function styleFault({ content, style = 1 }: JsonObject, isBroadcast: boolean): string | null {
  if (style === 3 && !isBroadcast) return 'a big picture to single devices';
  const chars = style === 1 || style === 3 ? 50 : style === 2 ? 128 : 200;
  return lengthOf(content) > chars ? `a content of ${lengthOf(content)} characters` : null;
}

function clickFault(notification: JsonObject): string | null {
  const { action_parameters: parameters, click_action_type: type = 0 } = notification;
  if (![0, 1, 2, 4, 5].some((known) => known === type))
    return `click_action_type is ${String(type)}`;
  if ((type === 1 || type === 4) && !notification.click_action_activity) return 'no activity';
  if ((type === 2 || type === 5) && !notification.click_action_url) return 'no URL';
  if (parameters === undefined) return null;
  return typeof parameters === 'string' && isJsonObject(parsed(parameters))
    ? null
    : 'action_parameters that are not a JSON object';
}

function restFault(notification: JsonObject): string | null {
  const { category, notify_level: level, off_line: isKept, off_line_ttl: ttl } = notification;
  if (isKept !== undefined && typeof isKept !== 'boolean')
    return 'off_line is neither true nor false';
  if (!isWithin(ttl, 0, 864_000)) return 'off_line_ttl is more than ten days';
  if (!isWithin(notification.notify_id, 0, 2_147_483_647)) return 'a bad notify_id';
  if (level !== undefined && category === undefined) return 'notify_level without a category';
  if (level !== undefined && ![1, 2, 16].includes(Number(level))) return 'an unknown notify_level';
  if (category !== undefined && !categories.has(String(category))) return 'an unknown category';
  for (const name of ['private_title_parameters', 'private_content_parameters']) {
    const values = notification[name];
    if (values === undefined) continue;
    if (notification.private_msg_template_id === undefined) return 'parameters without a template';
    if (!isJsonObject(values) || !Object.values(values).every((value) => typeof value === 'string'))
      return `${name} that are no texts`;
  }
  const url = notification.call_back_url;
  if (url !== undefined && !(typeof url === 'string' && URL.canParse(url)))
    return 'a bad call_back_url';
  return url === undefined && notification.call_back_parameter !== undefined
    ? 'a callback parameter without a URL'
    : null;
}

/** Parses JSON; undefined if the text is not JSON. */
function parsed(text: string): Json | undefined {
  try {
    const value: Json = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

// Parsers and checks for the forms of OPPO's calls (protocol/oppo.md#single-device to
// protocol/oppo.md#broadcast).

const root = '/server/v1/message/notification';
const authPath = '/server/v1/auth';

const maxTargets = 1000;

/** One message to one device. */
interface OppoMessage {
  target: string;
  notification: JsonObject;
}

/** Returns the devices in a call, without checking them. */
function targetsOf(call: SandboxCall): string[] {
  const form = formIn(call);
  if (call.path === `${root}/broadcast`)
    return (form.get('target_value') ?? '').split(';').filter(Boolean);
  return messagesIn(call).map(({ target }) => target);
}

/** Returns the messages of a single message or batch. */
function messagesIn(call: SandboxCall): OppoMessage[] {
  const isBatch = call.path === `${root}/unicast_batch`;
  const value = parsed(formIn(call).get(isBatch ? 'messages' : 'message') ?? '');
  const all: Json[] = isBatch
    ? Array.isArray(value)
      ? value
      : []
    : value === undefined
      ? []
      : [value];
  return all.flatMap((one) =>
    isJsonObject(one) && typeof one.target_value === 'string' && isJsonObject(one.notification)
      ? [{ target: one.target_value, notification: one.notification }]
      : [],
  );
}

const isRegistrationId = (text: string): boolean =>
  /^((([0-9A-Za-z]{2,10})_)?(.*)_)?[0-9a-fA-F]{32}$/.test(text) || /^[0-9a-fA-F]{24}$/.test(text);

/** Returns the first rule that messages break, or null if the rules are kept. */
function messagesFault(call: SandboxCall): string | null {
  const form = formIn(call);
  const isBatch = call.path === `${root}/unicast_batch`;
  const fault = namesFault(form, ['auth_token', isBatch ? 'messages' : 'message']);
  if (fault !== null) return fault;
  const value = parsed(form.get(isBatch ? 'messages' : 'message') ?? '');
  const all: Json[] = Array.isArray(value) ? value : value === undefined ? [] : [value];
  if (isBatch !== Array.isArray(value) || all.length === 0) return 'no messages';
  if (all.length > maxTargets) return `${all.length} messages in a request`;
  for (const one of all) {
    const wrong = messageFault(one);
    if (wrong !== null) return wrong;
  }
  return listFault(messagesIn(call).map(({ target }) => target));
}

function messageFault(message: Json): string | null {
  if (!isJsonObject(message)) return 'a message that is not an object';
  const {
    notification,
    target_type: type,
    target_value: target,
    verify_registration_id: isChecked,
    ...more
  } = message;
  if (Object.keys(more).length > 0) return 'an unknown member of a message';
  if (type !== 2) return 'target_type is not 2';
  if (typeof target !== 'string' || target === '') return 'no target_value';
  if (isChecked !== undefined && typeof isChecked !== 'boolean')
    return 'a bad verify_registration_id';
  return isJsonObject(notification) ? notificationFault(notification, false) : 'no notification';
}

/** Returns the first rule that a list of devices breaks, or null if the rules are kept. */
function listFault(targets: readonly string[]): string | null {
  if (targets.length === 0) return 'a request without devices';
  if (targets.length > maxTargets) return `${targets.length} devices in a request`;
  if (new Set(targets).size < targets.length) return 'a device twice in a request';
  return targets.every(isRegistrationId) ? null : 'an invalid registration id';
}

/** Checks that a form has only these fields, each at most once. */
function namesFault(form: URLSearchParams, names: readonly string[]): string | null {
  const given = [...form.keys()];
  if (new Set(given).size < given.length) return 'a field twice';
  const unknownField = given.find((name) => !names.includes(name));
  return unknownField === undefined ? null : `an unknown field ${unknownField.slice(0, 40)}`;
}

/** Builds a notification from the flat fields of a saved message. Strings stay strings. */
function savedNotification(form: URLSearchParams): JsonObject {
  const texts = /^(app_message_id|title|sub_title|content|.*_(activity|url|parameters?|id))$/;
  return Object.fromEntries(
    [...form]
      .filter(([name]) => name !== 'auth_token')
      .map(([name, value]) => [
        name,
        texts.test(name) && name !== 'notify_id' ? value : (parsed(value) ?? value),
      ]),
  );
}

/** State of the gateway. Tests can change it. */
export interface OppoMemory {
  app: { appKey: string; masterSecret: string };
  tokenIssuer: TokenIssuer;
  /** Devices that unsubscribed (code 10001). `deadTokens` get 10000. */
  unsubscribed: Set<string>;
  /** Devices for which the whole request is refused with 41 without naming the device. */
  ambiguousTokens: Set<string>;
  devicesPerSecond: number;
  /** Maximum number of messages per category and day. */
  devicesPerDay: number;
  savesPerDay: number;
  /** Categories of the console. If absent, all categories are accepted. */
  categories: readonly string[] | undefined;
  /** Messages with a URL for receipts, one per device. */
  receipts: ReceiptLog;
  /** Saved messages by id. */
  saved: Map<string, JsonObject>;
  /** Message ids of the client with their devices. A repeat is dropped. */
  sent: Set<string>;
}

const maxClockSkewMs = 600_000;
const kept = 20_000;

/** Rules for the gateway of one app (protocol/oppo.md). */
export class OppoRules implements GatewayRules {
  readonly successes: readonly Success[] = [
    { path: '/unicast_batch', body: anyItems },
    {
      path: authPath,
      body: okBody({ auth_token: 'x'.repeat(36), create_time: 1_700_000_000_000 }),
      isPreparation: true,
    },
  ];
  readonly #memory: OppoMemory;
  readonly #state: GatewayState;
  readonly #today = new Map<string, number>();
  #second = { startMs: 0, devices: 0 };
  #saves = 0;
  #ids = 0;

  constructor(memory: OppoMemory, state: GatewayState) {
    this.#memory = memory;
    this.#state = state;
  }

  targetsOf(call: SandboxCall): { tokens: readonly string[]; isTokenCall?: boolean } {
    return call.path === authPath ? { tokens: [], isTokenCall: true } : { tokens: targetsOf(call) };
  }

  handle(call: SandboxCall): SandboxReply {
    if (call.method !== 'POST') return { ...refusal(12), violation: `${call.method} ${call.path}` };
    if (
      !/^application\/x-www-form-urlencoded; ?charset=utf-8$/i.test(
        call.headers['content-type'] ?? '',
      )
    )
      return violationReply('a body that is not a form in UTF-8');
    if (call.path === authPath) return this.#grantToken(formIn(call));
    const token = formIn(call).get('auth_token');
    if (token === null) return { ...refusal(29), violation: 'a call without auth_token' };
    if (this.#memory.tokenIssuer.check(token) !== 'valid') return refusal(11);
    if (call.path === `${root}/unicast` || call.path === `${root}/unicast_batch`)
      return this.#unicast(call);
    if (call.path === `${root}/save_message_content`) return this.#save(formIn(call));
    if (call.path === `${root}/broadcast`) return this.#broadcast(formIn(call));
    return { ...refusal(21), violation: `an unknown call ${call.path}` };
  }

  forget(): void {
    this.#memory.receipts.clear();
    this.#memory.sent.clear();
  }

  /** Answers the token call (protocol/oppo.md#access-token). */
  #grantToken(form: URLSearchParams): SandboxReply {
    const { app, tokenIssuer } = this.#memory;
    const fault = namesFault(form, ['app_key', 'timestamp', 'sign']);
    if (fault !== null) return violationReply(fault);
    const key = form.get('app_key');
    const timestamp = form.get('timestamp') ?? '';
    if (key === null) return { ...refusal(15), violation: 'no app_key' };
    if (key !== app.appKey) return refusal(14);
    if (!/^\d{13}$/.test(timestamp)) return { ...refusal(18), violation: 'a bad timestamp' };
    const nowMs = this.#state.nowMs();
    if (Math.abs(Number(timestamp) - nowMs) > maxClockSkewMs) return refusal(19);
    const sign = createHash('sha256')
      .update(key)
      .update(timestamp)
      .update(app.masterSecret)
      .digest('hex');
    if (form.get('sign') !== sign) return refusal(16);
    return ok({ auth_token: tokenIssuer.issue().value, create_time: nowMs });
  }

  #unicast(call: SandboxCall): SandboxReply {
    const fault = messagesFault(call);
    const messages = messagesIn(call);
    if (fault !== null) return violationReply(fault);
    const limit = this.#limit(messages);
    if (limit !== null) return limit;
    const results = messages.map((message) => ({ message, code: this.#codeOf(message) }));
    const accepted = results
      .filter(({ code }) => code === 0)
      .map(({ message }) => this.#accept(message));
    const ids = new Map(accepted.map(({ id, token }) => [token, id]));
    const tokens = accepted.map(({ token }) => token);
    if (call.path.endsWith('/unicast')) {
      const [one] = results;
      return one?.code === 0
        ? { ...ok({ messageId: ids.get(one.message.target) ?? '' }), accepted: tokens }
        : refusal(one?.code ?? 40);
    }
    const items = results.map(({ code, message: { target } }) => ({
      messageId: ids.get(target) ?? this.#nextId(),
      registrationId: target,
      ...(code === 0 ? {} : { errorCode: code, errorMessage: 'refused' }),
    }));
    return { ...ok(items), accepted: tokens };
  }

  #save(form: URLSearchParams): SandboxReply {
    const notification = savedNotification(form);
    const fault = notificationFault(notification, true);
    if (fault !== null) return violationReply(fault);
    this.#saves += 1;
    if (this.#saves > this.#memory.savesPerDay) return refusal(42);
    const id = `App-1-3-${this.#nextId()}`;
    this.#memory.saved.set(id, notification);
    return ok({ message_id: id });
  }

  #broadcast(form: URLSearchParams): SandboxReply {
    const names = [
      'auth_token',
      'message_id',
      'target_type',
      'target_value',
      'verify_registration_id',
    ];
    const targets = (form.get('target_value') ?? '').split(';').filter(Boolean);
    const fault = namesFault(form, names) ?? listFault(targets);
    if (fault !== null || form.get('target_type') !== '2')
      return violationReply(fault ?? 'target_type is not 2');
    const message_id = form.get('message_id') ?? '';
    const notification = this.#memory.saved.get(message_id);
    if (!notification) return refusal(31);
    const messages = targets.map((target) => ({ target, notification }));
    const limit = this.#limit(messages);
    if (limit !== null) return limit;
    const groups: Record<string, string[]> = {};
    const accepted: string[] = [];
    const task_id = this.#nextId();
    for (const message of messages) {
      const code = this.#codeOf(message);
      if (code === 0) accepted.push(this.#accept(message, task_id).token);
      else {
        const group = groups[code];
        if (group) group.push(message.target);
        else groups[code] = [message.target];
      }
    }
    return { ...ok({ message_id, task_id, ...groups }), accepted };
  }

  /**
   * Returns the refusal of a whole request because of the rate, the daily quota, the category or an
   * unnamed device. Returns null if it is accepted.
   */
  #limit(messages: readonly OppoMessage[]): SandboxReply | null {
    const { categories, devicesPerDay, devicesPerSecond, ambiguousTokens } = this.#memory;
    const startMs = Math.floor(this.#state.nowMs() / 1000);
    if (this.#second.startMs !== startMs) this.#second = { startMs, devices: 0 };
    this.#second.devices += messages.length;
    if (this.#second.devices > devicesPerSecond) return refusal(55);
    const notification: JsonObject = messages[0]?.notification ?? {};
    const category = String(notification.category ?? 'default');
    if (notification.category !== undefined && categories?.includes(category) === false)
      return refusal(67);
    // Chat messages need a template (protocol/oppo.md#notification).
    if (notification.category === 'IM' && notification.private_msg_template_id === undefined)
      return { status: 200, body: { code: 54, message: 'private_msg_template_id is null' } };
    const used = this.#today.get(category) ?? 0;
    if (used + messages.length > devicesPerDay) return refusal(33);
    this.#today.set(category, used + messages.length);
    return messages.some(({ target }) => ambiguousTokens.has(target)) ? refusal(41) : null;
  }

  #codeOf({ notification, target }: OppoMessage): number {
    if (this.#state.deadTokens.has(target)) return 10000;
    if (this.#memory.unsubscribed.has(target)) return 10001;
    return this.#memory.sent.has(`${String(notification.app_message_id)} ${target}`) ? 32 : 0;
  }

  #accept(
    { notification, target }: OppoMessage,
    id = this.#nextId(),
  ): { id: string; token: string } {
    const {
      app_message_id: own,
      call_back_parameter: param,
      call_back_url: callback,
    } = notification;
    const { receipts, sent } = this.#memory;
    if (own !== undefined) sent.add(`${String(own)} ${target}`);
    if (sent.size > kept) sent.clear();
    if (typeof callback === 'string' && callback !== '')
      receipts.add({ id, tokens: new Set([target]), callback, param: String(param ?? '') });
    return { id, token: target };
  }

  #nextId(): string {
    this.#ids += 1;
    return `622ff7cf${this.#ids.toString(16).padStart(16, '0')}`;
  }
}

const okBody = (data: unknown) => ({ code: 0, message: 'Success', data });
const ok = (data: unknown): SandboxReply => ({ status: 200, body: okBody(data) });

const beforeDevice = encodeURIComponent('"target_value":"');
const afterDevice = encodeURIComponent('"');

/**
 * Returns an item for each message of a batch, with its device and the same message id. Finds the
 * devices without a parser.
 */
function anyItems(request: string): string {
  const items: string[] = [];
  for (let at = request.indexOf(beforeDevice); at >= 0; at = request.indexOf(beforeDevice, at)) {
    at += beforeDevice.length;
    const device = request.slice(at, request.indexOf(afterDevice, at));
    items.push(`{"messageId":"5f3c1b9ce1382335f21ac4d3","registrationId":"${device}"}`);
  }
  return `{"code":0,"message":"Success","data":[${items.join(',')}]}`;
}

const refusal = (code: number): SandboxReply => ({
  status: 200,
  body: { code, message: `refused ${code}` },
});

/** Returns the response to a request that a client must never send. */
const violationReply = (violation: string): SandboxReply => ({ ...refusal(41), violation });
