import type { z } from 'zod';
import { dayMs } from '../../clock.ts';
import { flagIn } from '../client-values.ts';
import { Refusal, refuse } from '../errors/errors.ts';
import { issueText } from '../errors/issue-text.ts';
import { isJsonObject, type Json, type JsonObject, parseJson, unstorableText } from '../json.ts';
import { type Detail, detail } from '../texts/texts.ts';
import { type common, devicesBody, queryBody } from './body.ts';
import { type Translations, translationsOf } from './languages.ts';
import type { LiveActivity } from './live-activity.ts';
import { type LocalTime, localRequestOf, localTimeOf } from './local-time.ts';
import { type PushClass, pushClassOf } from './push-class.ts';
import { noPushEvents, type PushEventTotals, pushEventTypes } from './push-events.ts';
import { checkRichContent } from './rich-content.ts';
import { type Variables, variablesOf } from './variables.ts';

/**
 * Checked request of a push, in one form for all clients (protocol/push.md#push-call). Stored as
 * JSON in the column `request`. The planner and the connectors read it.
 */
export interface PushOrder extends PushClass {
  data: JsonObject;
  target:
    | { kind: 'query'; where: Json; channels: string[] | null }
    | {
        kind: 'devices';
        deviceType: 'android' | 'ios';
        deviceIds: string[];
        vendor: string | null;
        deviceProfile: string | null;
      };
  prod: 'dev' | 'prod';
  topic: string | null;
  teamId: string | null;
  /** Recipients per second over all dispatchers; null is unlimited. */
  flowControl: number | null;
  notificationChannel: string | null;
  /** Translated content: members of `data` by language. Absent if the push has no translations. */
  languages?: Translations;
  /**
   * Variables that the texts contain, filled in for each recipient. Absent if the push has none.
   */
  variables?: Variables;
  /** Present if each device gets the push at the same local time of its own time zone. */
  local?: LocalTime;
  /**
   * Present if the push sends again to recipients that an earlier push did not reach. `target` then
   * names no device.
   */
  redrive?: Redrive;
  /**
   * Present if the push recalls or replaces the messages of an earlier push. `target` then names no
   * device, and `data` is the replacement; without a replacement it is empty.
   */
  recall?: Recall;
  /** Present if the push was created by a recurring push. */
  recurring?: RecurringName;
  /**
   * If true, each user gets the push on one device only: the targeted device that was saved last.
   */
  lastActiveDeviceOnly?: true;
  /** Internal name, for people. No device gets it. */
  campaign?: string;
  /**
   * Present if the push starts, updates or ends Live Activities. It is then sent to their tokens or
   * to a broadcast channel, and `target` only narrows the devices.
   */
  liveActivity?: LiveActivity;
  /** If true, its messages contain its id (`pushIdMember`), so that apps can report events. */
  hasPushId?: true;
}

/** The recurring push that created a push. `name` is its name at that time. */
interface RecurringName {
  id: number;
  name: string;
}

/** Recipients of an earlier push that this push sends to again. */
export interface Redrive extends RedriveSelection {
  /** Id of the earlier push. `objectId` is its public id. */
  pushId: number;
  objectId: string;
  /**
   * Target of the earlier push, which decides the routes. If the target lists devices, only their
   * number is kept (`listed`).
   */
  target: PushOrder['target'] & { listed?: number };
}

/** The earlier push whose messages a push recalls (protocol/admin-api.md#recall). */
export interface Recall {
  /** Id of the earlier push. `objectId` is its public id. */
  pushId: number;
  objectId: string;
  /** Content of the earlier push. Its messages carry ids that a replacement needs. */
  order: Omit<PushOrder, 'target' | 'recall' | 'redrive'>;
  /** Target of the earlier push, which decides the routes. Listed devices are left out. */
  target: PushOrder['target'];
  /** Epoch milliseconds. */
  createdAtMs: number;
  expiresAtMs: number;
  hasReplacement: boolean;
}

/** Outcomes after which a recipient can be sent to again. */
export const redrivenOutcomes = ['failed', 'expired', 'capped'] as const;

/**
 * Filters for the recipients that the earlier push did not reach; null selects all. `from` and `to`
 * limit the time of the failure, in ISO 8601.
 */
export interface RedriveSelection {
  outcomes: readonly (typeof redrivenOutcomes)[number][];
  connector: string | null;
  reason: string | null;
  from: string | null;
  to: string | null;
  /**
   * Also sends again to recipients whose gateway did not answer. Such a recipient may get the
   * message twice.
   */
  includeUnsure?: boolean;
}

/**
 * Returns the target that the content was written for. In a redrive or a recall this is the target
 * of the first push.
 */
export const originalTarget = ({ target, redrive, recall }: PushOrder): PushOrder['target'] =>
  redrive?.target ?? recall?.target ?? target;

/** Ids and times of a push request. */
export interface PushTiming {
  notificationId: string | null;
  reqId: string | null;
  /** Time to send; null sends at once. */
  pushTime: Date | null;
  expirationTime: Date | null;
  expirationSeconds: number | null;
  /**
   * When a push at local time starts in the last time zone. The retention period of its record
   * starts then.
   */
  lastStart?: Date;
}

export interface PushRequest {
  pushOrder: PushOrder;
  timing: PushTiming;
  /** Warnings about ignored members. */
  warnings: Detail[];
}

/** The body of POST /1.1/push must be smaller than this (protocol/push.md#body-size). */
export const pushBodyBytesBelow = 4096;
/** Lower rates are raised to this rate (protocol/push.md#flow-control). */
const minFlowControl = 1000;
/** Default lifetime of a push (protocol/push.md#expiry: seven days). */
export const defaultExpiryMs = 7 * dayMs;
/**
 * Returns when a push with this lifetime expires. The result is at most the year 9999, the latest
 * that PostgreSQL and JSON can hold; such a push never expires.
 */
export const expiryAfter = (pushTime: Date, lifeMs: number): Date =>
  new Date(Math.min(pushTime.getTime() + lifeMs, Date.UTC(9999, 0, 1)));

/**
 * If `push_time` is less than this far ahead, the push is sent at once
 * (protocol/push.md#scheduling).
 */
const soonMs = 60_000;
/** Limit of `push_time`: ten years ahead. */
export const maxAheadMs = 10 * 365 * dayMs;

/** Returns the flow control of a request, raised to the minimum; null if unlimited. */
export const flowControlOf = (requested: number | null | undefined): number | null =>
  typeof requested === 'number' ? Math.max(requested, minFlowControl) : null;

const queryMembers: ReadonlySet<string> = new Set(Object.keys(queryBody.shape));
const devicesMembers: ReadonlySet<string> = new Set(Object.keys(devicesBody.shape));

/** Parses a body. Throws error 1, 107, 111, 112 or 152, with a text that names the member. */
function parse<T>(schema: z.ZodType<T>, body: JsonObject): T {
  const result = schema.safeParse(body, { error: issueText });
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const member = String(issue?.path[0] ?? '');
  const message = `${member}: ${issue?.message}`;
  if (member === 'channels') throw refuse('invalidChannel');
  if (member === 'push_time') throw refuse('invalidPushTime', message);
  if (body[member] === undefined) throw refuse('invalidParameter', detail('required', { member }));
  throw refuse('incorrectType', message);
}

type Common = z.infer<z.ZodObject<typeof common>>;
type Expiring = Pick<
  Common,
  'expiration_time' | 'expiration_interval' | 'notification_id' | 'req_id'
>;

export function timing(body: Expiring, pushTime: Date | null, nowMs: number): PushTiming {
  if (body.expiration_time && body.expiration_interval)
    throw refuse('invalidParameter', detail('oneExpiry'));
  if (pushTime && pushTime.getTime() - nowMs > maxAheadMs)
    throw refuse('invalidPushTime', detail('pushTimeFar'));
  return {
    notificationId: body.notification_id ?? null,
    reqId: body.req_id ?? null,
    pushTime: pushTime && pushTime.getTime() - nowMs >= soonMs ? pushTime : null,
    expirationTime: body.expiration_time ?? null,
    expirationSeconds: body.expiration_interval ?? null,
  };
}

/**
 * Checks the members of `data` that have the same meaning for all gateways
 * (protocol/push.md#content).
 */
function checkData(body: JsonObject): JsonObject {
  const content = body.data;
  if (!isJsonObject(content)) throw refuse('incorrectType', detail('dataIsDictionary'));
  const { alert, title, silent } = content;
  if (alert !== undefined && typeof alert !== 'string' && !isJsonObject(alert))
    throw refuse('incorrectType', 'data.alert: expected a string, or an object for iOS.');
  if (title !== undefined && title !== null && typeof title !== 'string')
    throw refuse('incorrectType', 'data.title: expected a string.');
  if (silent !== undefined && silent !== null && flagIn(silent) === undefined)
    throw refuse('incorrectType', 'data.silent: expected true or false.');
  checkRichContent(content, 'data.');
  for (const name of ['android', 'ios'])
    if (isJsonObject(content[name])) checkRichContent(content[name], `data.${name}.`);
  return content;
}

function baseOrder(body: Common, content: JsonObject, prodHeader: 'dev' | 'prod' | undefined) {
  const inData = content._notificationChannel;
  const languages = translationsOf(body.languages);
  const variables = variablesOf(body.variables, {
    data: content,
    ...(languages ? { languages } : {}),
  });
  return {
    data: content,
    ...(languages ? { languages } : {}),
    ...(variables ? { variables } : {}),
    prod: body.prod ?? prodHeader ?? 'prod',
    topic: body.topic ?? null,
    teamId: body.pgw_team_id ?? body.apns_team_id ?? null,
    notificationChannel: body._notificationChannel ?? (typeof inData === 'string' ? inData : null),
    ...pushClassOf(body),
    ...(body.lastActiveDeviceOnly ? { lastActiveDeviceOnly: true as const } : {}),
    ...(body.campaign ? { campaign: body.campaign } : {}),
  } as const;
}

/**
 * Returns the condition in `where`: a dictionary, a list (implicit AND), or a JSON string of either
 * (protocol/queries.md#query-parameters, protocol/push.md#push-call).
 */
export function whereOf(body: JsonObject): Json {
  const where = body.where;
  if (where === undefined || where === null) return {};
  if (typeof where !== 'string') {
    if (typeof where === 'object') return where;
    throw refuse('malformedJson', 'where: expected a JSON dictionary.');
  }
  if (where.trim() === '') return {};
  try {
    const parsed = parseJson(where);
    if (typeof parsed === 'object' && parsed !== null) return parsed;
  } catch (error) {
    if (error instanceof Refusal) throw error;
  }
  throw refuse('malformedJson', 'where: expected a JSON dictionary.');
}

/** Throws error 111 if a string is not valid Unicode (protocol/push.md#push-call). */
export function checkTexts(value: Json, path: string): void {
  const fault = unstorableText(value, path);
  if (fault) throw refuse('incorrectType', fault);
}

/**
 * Parses the body of POST /1.1/push. Ignores unknown members with a warning. Throws error 107, 111,
 * 112, 152 or 1, with a text that names the member.
 */
export function parsePush(
  body: JsonObject,
  prodHeader: 'dev' | 'prod' | undefined,
  nowMs: number,
): PushRequest {
  checkTexts(body, '');
  const local = localRequestOf(body, nowMs);
  const sent = parse(queryBody, local ? { ...body, push_time: null } : body);
  // `withoutCql` has already replaced a valid `cql` by `where`. If a remaining `cql` were ignored,
  // the push would go to all devices.
  if (sent.cql !== undefined && sent.cql !== null)
    throw refuse('invalidQuery', 'cql was not read.');
  const { where } = body;
  const condition = whereOf(body);
  checkTexts(condition, 'where');
  const hasWhere = where !== undefined && where !== null && where !== '';
  const hasTarget = hasWhere || (sent.channels ?? []).length > 0;
  return {
    pushOrder: {
      ...baseOrder(sent, checkData(body), prodHeader),
      target: { kind: 'query', where: condition, channels: sent.channels ?? null },
      flowControl: flowControlOf(sent.flow_control),
      ...(local ? { local: localTimeOf(local, sent, defaultExpiryMs / 1000) } : {}),
    },
    timing: {
      ...timing(sent, local?.firstStart ?? sent.push_time ?? null, nowMs),
      ...(local ? { lastStart: local.lastStart } : {}),
    },
    warnings: unknownMemberWarnings(body, { known: queryMembers, hasTarget }),
  };
}

/**
 * Parses the body of POST /1.1/push/devices: at most 500 ids of one device type. Throws the errors
 * of `parsePush`.
 */
export function parsePushToDevices(
  body: JsonObject,
  prodHeader: 'dev' | 'prod' | undefined,
  nowMs: number,
): PushRequest {
  checkTexts(body, '');
  const sent = parse(devicesBody, body);
  if (sent.vendor && sent.device_type !== 'android')
    throw refuse('invalidParameter', 'vendor goes with device_type "android" only.');
  const pushOrder = baseOrder(sent, checkData(body), prodHeader);
  return {
    pushOrder: {
      ...pushOrder,
      notificationChannel: sent.channel ?? pushOrder.notificationChannel,
      target: {
        kind: 'devices',
        deviceType: sent.device_type,
        deviceIds: [...new Set(sent.device_ids)],
        vendor: sent.vendor ?? null,
        deviceProfile: sent.device_profile ?? null,
      },
      flowControl: null,
    },
    timing: timing(sent, null, nowMs),
    warnings: unknownMemberWarnings(body, { known: devicesMembers, hasTarget: true }),
  };
}

/**
 * Totals of the receipts for a push: those of the gateways, and the events that the app reported.
 * `delivered` counts devices that got the push, `clicked` devices on which it was opened. Each
 * device counts once.
 */
export interface ReceiptTotals extends PushEventTotals {
  delivered: number;
  clicked: number;
}

export const noReceipts: Readonly<ReceiptTotals> = { delivered: 0, clicked: 0, ...noPushEvents };

/** Adds `more` to `totals` in place and returns it. */
export function addReceipts(totals: ReceiptTotals, more: Readonly<ReceiptTotals>): ReceiptTotals {
  totals.delivered += more.delivered;
  totals.clicked += more.clicked;
  for (const type of pushEventTypes) totals[type] += more[type];
  return totals;
}

/**
 * Members that existing clients send in a push although they have no effect there
 * (protocol/push.md#push-call, 5.11). The Java SDK sends all parameters of a query, and the old
 * push client for browsers sends its configuration. Private members (`_…`) are also accepted.
 */
const ignoredMembers = new Set([
  'appId',
  'appKey',
  'className',
  'count',
  'deviceType',
  'include',
  'installationId',
  'keys',
  'limit',
  'order',
  'returnACL',
  'skip',
]);

/** Maximum number of warnings in a reply. */
const maxWarnings = 20;

/**
 * Returns a warning for each unknown member, except members that existing clients send. Throws
 * error 1 if a push without a target has an unknown member. For example, `channel` instead of
 * `channels` would otherwise send the push to all devices.
 */
function unknownMemberWarnings(
  body: JsonObject,
  { known, hasTarget }: { known: ReadonlySet<string>; hasTarget: boolean },
): Detail[] {
  const unknown = Object.keys(body).filter(
    (name) => !known.has(name) && !ignoredMembers.has(name) && !name.startsWith('_'),
  );
  const [first] = unknown;
  if (first !== undefined && !hasTarget)
    throw refuse(
      'invalidParameter',
      unknownMember(first, known, ['unnamedAll', 'unknownAll', 'unknownMeantAll']),
    );
  const warnings = unknown
    .slice(0, maxWarnings)
    .map((name) => unknownMember(name, known, ['ignoredUnnamed', 'ignored', 'ignoredMeant']));
  const more = unknown.length - warnings.length;
  return more > 0 ? [...warnings, detail('ignoredMore', { n: more })] : warnings;
}

/** Normalises a name, so that different spellings are equal. */
const plain = (name: string): string =>
  name.toLowerCase().replaceAll(/[_-]/g, '').replace(/s$/, '');

type Codes = [unnamed: Detail['code'], named: Detail['code'], meant: Detail['code']];

/** Describes an unknown member. Its name is only shown if it looks like a name. */
function unknownMember(
  name: string,
  known: ReadonlySet<string>,
  [unnamed, named, misspelt]: Codes,
): Detail {
  const isShown = /^[A-Za-z][\w-]{0,63}$/.test(name);
  const meant = [...known].find((one) => plain(one) === plain(name));
  if (!isShown) return detail(unnamed);
  return meant === undefined
    ? detail(named, { member: name })
    : detail(misspelt, { member: name, meant });
}
