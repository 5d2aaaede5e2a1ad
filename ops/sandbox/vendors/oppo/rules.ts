import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import type { GatewayRules, GatewayState, SandboxCall, SandboxReply } from '../../http/gateway.ts';
import type { ReceiptLog } from '../../http/receipts.ts';
import type { TokenIssuer } from '../../http/server.ts';
import { formIn } from '../../http/server.ts';
import type { Success } from '../../kit/unchecked.ts';
import {
  authPath,
  listFault,
  messagesFault,
  messagesIn,
  namesFault,
  type OppoMessage,
  root,
  savedNotification,
  targetsOf,
} from './calls.ts';
import { notificationFault } from './message.ts';

/** State of the gateway, which tests can change. */
export interface OppoMemory {
  app: { appKey: string; masterSecret: string };
  tokenIssuer: TokenIssuer;
  /** Devices that unsubscribed: 10001. `deadTokens` are 10000. */
  unsubscribed: Set<string>;
  /** Devices for which the whole request is refused with 41, without naming them. */
  ambiguousTokens: Set<string>;
  devicesPerSecond: number;
  /** Messages of each category per day. */
  devicesPerDay: number;
  savesPerDay: number;
  /** Categories of the console; absent: any is accepted. */
  categories: readonly string[] | undefined;
  /** Messages with a URL for receipts, one per device. */
  receipts: ReceiptLog;
  /** Saved messages by their id. */
  saved: Map<string, JsonObject>;
  /** Client's message ids with devices: a repeat is dropped. */
  sent: Set<string>;
}

const maxClockSkewMs = 600_000;
const kept = 20_000;

/** The rules of one app's gateway (protocol/oppo.md). */
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
    if (!/^application\/x-www-form-urlencoded; ?charset=utf-8$/i.test(call.headers['content-type'] ?? ''))
      return violationReply('a body that is not a form in UTF-8');
    if (call.path === authPath) return this.#grantToken(formIn(call));
    const token = formIn(call).get('auth_token');
    if (token === null) return { ...refusal(29), violation: 'a call without auth_token' };
    if (this.#memory.tokenIssuer.check(token) !== 'valid') return refusal(11);
    if (call.path === `${root}/unicast` || call.path === `${root}/unicast_batch`) return this.#unicast(call);
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
    const sign = createHash('sha256').update(key).update(timestamp).update(app.masterSecret).digest('hex');
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
    const accepted = results.filter(({ code }) => code === 0).map(({ message }) => this.#accept(message));
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
    const names = ['auth_token', 'message_id', 'target_type', 'target_value', 'verify_registration_id'];
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

  /** Returns the refusal of a whole request, or null: rate, day quota, category, or an unnamed device. */
  #limit(messages: readonly OppoMessage[]): SandboxReply | null {
    const { categories, devicesPerDay, devicesPerSecond, ambiguousTokens } = this.#memory;
    const startMs = Math.floor(this.#state.nowMs() / 1000);
    if (this.#second.startMs !== startMs) this.#second = { startMs, devices: 0 };
    this.#second.devices += messages.length;
    if (this.#second.devices > devicesPerSecond) return refusal(55);
    const notification: JsonObject = messages[0]?.notification ?? {};
    const category = String(notification.category ?? 'default');
    if (notification.category !== undefined && categories?.includes(category) === false) return refusal(67);
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

  #accept({ notification, target }: OppoMessage, id = this.#nextId()): { id: string; token: string } {
    const { app_message_id: own, call_back_parameter: param, call_back_url: callback } = notification;
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

/** Returns an item for each message of a batch, with its device and one message id for all. Finds devices without a parser. */
function anyItems(request: string): string {
  const items: string[] = [];
  for (let at = request.indexOf(beforeDevice); at >= 0; at = request.indexOf(beforeDevice, at)) {
    at += beforeDevice.length;
    const device = request.slice(at, request.indexOf(afterDevice, at));
    items.push(`{"messageId":"5f3c1b9ce1382335f21ac4d3","registrationId":"${device}"}`);
  }
  return `{"code":0,"message":"Success","data":[${items.join(',')}]}`;
}

const refusal = (code: number): SandboxReply => ({ status: 200, body: { code, message: `refused ${code}` } });

/** Returns the response to a request that a client must never send. */
const violationReply = (violation: string): SandboxReply => ({ ...refusal(41), violation });
