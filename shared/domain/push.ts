import { z } from 'zod';
import { refuse } from './errors.ts';
import { issueText } from './issue-text.ts';
import { isJsonObject, type Json, type JsonObject, parseJson } from './json.ts';
import { warningsAbout } from './push-members.ts';

/**
 * A push as it was asked for, checked and in one form whatever client sent it (push.md "Push",
 * compat.md 5.1). Stored on the record; the planner and the connectors read it there.
 */
export interface PushOrder {
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
}

/** What the request says beside the order: names and times. */
export interface PushTiming {
  notificationId: string | null;
  reqId: string | null;
  /** When to send; null is at once. */
  pushTime: Date | null;
  expirationTime: Date | null;
  expirationSeconds: number | null;
}

export interface PushRequest {
  order: PushOrder;
  timing: PushTiming;
  /** Sentences about members that were ignored. */
  warnings: string[];
}

/** The body of POST /1.1/push is under this (push.md "Limits" 4). */
export const pushBodyBytesBelow = 4096;
/** Device ids in one call (push.md "Limits" 5). */
const maxDeviceIds = 500;
/** Lower rates count as this one (push.md "Limits" 7). */
const minFlowControl = 1000;
/** Until when a push without an expiry is of use (compat.md 5.1: seven days). */
export const defaultExpiryMs = 7 * 24 * 3600 * 1000;
/** A push_time less than this ahead is sent at once (push.md, `push_time`). */
export const soonMs = 60_000;
/** The scheduler keeps what it accepts: nothing beyond ten years. */
const maxAheadMs = 10 * 365 * 24 * 3600 * 1000;

/** `flow_control` as it is asked for; also on the call that resumes a push. */
export const flowControl = z.number().min(0).max(1_000_000_000).nullish();

/** The pace that is meant: lower rates count as the lowest one, none is unlimited. */
export const flowControlOf = (asked: number | null | undefined): number | null =>
  typeof asked === 'number' ? Math.max(asked, minFlowControl) : null;

const shortId = z
  .string()
  .regex(/^[A-Za-z0-9]{1,16}$/, 'expected at most 16 letters or digits')
  .nullish();

const isoTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:?\d{2})$/;

/** ISO 8601 with or without milliseconds, also as `{"__type":"Date","iso":…}`, as SDKs encode dates. */
const time = z
  .union([z.string(), z.object({ __type: z.literal('Date'), iso: z.string() }).transform((date) => date.iso)])
  .refine((text) => isoTime.test(text) && !Number.isNaN(Date.parse(text)), 'expected an ISO 8601 time')
  .transform((text) => new Date(text))
  .nullish();

/** Old documentation shows the number as a string (compat.md 5.1). */
const seconds = z
  .union([
    z.number(),
    z
      .string()
      .regex(/^\d{1,10}$/, 'expected a number of seconds')
      .transform(Number),
  ])
  .refine((value) => Number.isFinite(value) && value > 0, 'expected a positive number of seconds')
  .nullish();

const text = z.string().min(1).max(256).nullish();

const data = z.record(z.string(), z.unknown());

/** Channel names: letters, digits, `_ = -`, Chinese characters, or empty for broadcast (compat.md 8). */
const channelName = z
  .string()
  .max(200)
  .regex(/^[\p{Script=Han}A-Za-z0-9_=-]*$/u, { error: 'invalid channel name' });

const channels = z.union([channelName.transform((name) => [name]), z.array(channelName).max(1000)]).nullish();

const common = {
  data,
  notification_id: shortId,
  req_id: shortId,
  expiration_time: time,
  expiration_interval: seconds,
  prod: z.enum(['dev', 'prod'], 'expected "dev" or "prod"').nullish(),
  topic: text,
  pgw_team_id: text,
  apns_team_id: text,
  _notificationChannel: text,
};

const queryBody = z.object({
  ...common,
  where: z.unknown().optional(),
  cql: z.unknown().optional(),
  channels,
  push_time: time,
  flow_control: flowControl,
});

const queryMembers: ReadonlySet<string> = new Set(Object.keys(queryBody.shape));

const deviceId = z
  .string()
  .min(1)
  .max(512)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  .regex(/^[^\s\x00-\x1f\x7f]+$/, 'a device id has no blanks or control characters');

const devicesBody = z.object({
  ...common,
  device_type: z.enum(['android', 'ios'], 'expected "android" or "ios"'),
  device_ids: z.array(deviceId).min(1).max(maxDeviceIds, `at most ${maxDeviceIds} device ids`),
  device_profile: z
    .string()
    .regex(/^([A-Za-z][A-Za-z0-9_]*)?$|^_default$/, 'a profile name begins with a letter')
    .max(64)
    .nullish(),
  channel: text,
  vendor: text,
});

const devicesMembers: ReadonlySet<string> = new Set(Object.keys(devicesBody.shape));

function parse<T>(schema: z.ZodType<T>, body: JsonObject): T {
  const result = schema.safeParse(body, { error: issueText });
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const member = String(issue?.path[0] ?? '');
  const sentence = `${member}: ${issue?.message}`;
  if (member === 'channels') throw refuse('invalidChannel');
  if (member === 'push_time') throw refuse('invalidPushTime', sentence);
  if (body[member] === undefined) throw refuse('invalidParameter', `${member} is required.`);
  throw refuse('incorrectType', sentence);
}

type Common = z.infer<z.ZodObject<typeof common>>;

function timing(body: Common, pushTime: Date | null, nowMs: number): PushTiming {
  if (body.expiration_time && body.expiration_interval)
    throw refuse('invalidParameter', 'expiration_time and expiration_interval exclude each other.');
  if (pushTime && pushTime.getTime() - nowMs > maxAheadMs)
    throw refuse('invalidPushTime', 'push_time: at most ten years ahead.');
  return {
    notificationId: body.notification_id ?? null,
    reqId: body.req_id ?? null,
    pushTime: pushTime && pushTime.getTime() - nowMs >= soonMs ? pushTime : null,
    expirationTime: body.expiration_time ?? null,
    expirationSeconds: body.expiration_interval ?? null,
  };
}

/** Checks the members of `data` that mean the same to every gateway (push.md "Push content"). */
function checkData(body: JsonObject): JsonObject {
  const content = body.data;
  if (!isJsonObject(content)) throw refuse('incorrectType', 'data: expected a JSON dictionary.');
  const { alert, title, silent } = content;
  if (alert !== undefined && typeof alert !== 'string' && !isJsonObject(alert))
    throw refuse('incorrectType', 'data.alert: expected a string, or an object for iOS.');
  if (title !== undefined && title !== null && typeof title !== 'string')
    throw refuse('incorrectType', 'data.title: expected a string.');
  if (silent !== undefined && silent !== null && typeof silent !== 'boolean')
    throw refuse('incorrectType', 'data.silent: expected true or false.');
  return content;
}

function baseOrder(body: Common, content: JsonObject, prodHeader: 'dev' | 'prod' | undefined) {
  const inData = content._notificationChannel;
  return {
    data: content,
    prod: body.prod ?? prodHeader ?? 'prod',
    topic: body.topic ?? null,
    teamId: body.pgw_team_id ?? body.apns_team_id ?? null,
    notificationChannel: body._notificationChannel ?? (typeof inData === 'string' ? inData : null),
  } as const;
}

/** `where` may be a dictionary, a list (implicit AND) or either as a JSON string (compat.md 3.1, 5.1). */
function whereOf(body: JsonObject): Json {
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
  } catch {
    // Falls through to the refusal: what was wrong with it is the same to the caller.
  }
  throw refuse('malformedJson', 'where: expected a JSON dictionary.');
}

/**
 * The body of POST /1.1/push. Members that it does not know are ignored, with a warning (`warningsAbout`). Throws 107,
 * 111, 112, 152 or 1 with a sentence that names the member.
 */
export function parsePush(
  body: JsonObject,
  prodHeader: 'dev' | 'prod' | undefined,
  nowMs: number,
): PushRequest {
  const sent = parse(queryBody, body);
  // Read before as `where` (shared/query/cql): without it the push would go to everybody.
  if (sent.cql !== undefined && sent.cql !== null) throw refuse('invalidQuery', 'cql was not read.');
  const { where } = body;
  const isChosen = where !== undefined && where !== null && where !== '';
  const hasTarget = isChosen || (sent.channels ?? []).length > 0;
  return {
    order: {
      ...baseOrder(sent, checkData(body), prodHeader),
      target: { kind: 'query', where: whereOf(body), channels: sent.channels ?? null },
      flowControl: flowControlOf(sent.flow_control),
    },
    timing: timing(sent, sent.push_time ?? null, nowMs),
    warnings: warningsAbout(body, { known: queryMembers, hasTarget }),
  };
}

/** The body of POST /1.1/push/devices: at most 500 ids of one type. Throws as `parsePush`. */
export function parsePushToDevices(
  body: JsonObject,
  prodHeader: 'dev' | 'prod' | undefined,
  nowMs: number,
): PushRequest {
  const sent = parse(devicesBody, body);
  if (sent.vendor && sent.device_type !== 'android')
    throw refuse('invalidParameter', 'vendor goes with device_type "android" only.');
  const order = baseOrder(sent, checkData(body), prodHeader);
  return {
    order: {
      ...order,
      notificationChannel: sent.channel ?? order.notificationChannel,
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
    warnings: warningsAbout(body, { known: devicesMembers, hasTarget: true }),
  };
}
