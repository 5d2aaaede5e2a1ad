/**
 * `data` of a push → the body and headers APNs takes (protocol/push.md#ios-content, protocol/push.md#content,
 * protocol/apns.md#request). Pure; wrong types are told as a sentence.
 */
import { createHash } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';
import { dataKeyOwners } from '../../shared/domain/labels.ts';
import type { PushMessage, Rendering } from '../contract/connector.ts';
import { checkAps, isShowing, PayloadError, textOf, withoutEmpty } from './aps.ts';
import { allPushTypes, plainPushTypes, pushTypeOf } from './push-types.ts';

/** Rendered push, the part that all recipients share. */
export interface ApnsPayload {
  /** The body, or what is around the badge number. */
  body: Buffer;
  /** Byte at which each recipient's badge goes in; absent: the body is the same for all. */
  badgeAt?: number;
  pushType: string;
  priority: '5' | '10';
  /** `apns-collapse-id`: a notification with the same id replaces the one that is shown; null: no such header. */
  collapseId: string | null;
  /** The device shows the message once, however often it arrives. */
  isRepeatHidden: boolean;
  /** Epoch seconds; `0`: one attempt. */
  expiration: string;
}

/** Members of `data` that become members of `aps`; `title` joins `alert`. */
const apsMembers = new Set([
  'alert',
  'title',
  'category',
  'thread-id',
  'badge',
  'sound',
  'content-available',
  'mutable-content',
  'url-args',
  'target-content-id',
  'interruption-level',
  'relevance-score',
  'filter-criteria',
]);

/** Members that become headers, under both of their names (protocol/labels.md#members-of-apns). */
const controlMembers = new Map<string, 'collapseId' | 'priority' | 'pushType'>([
  ['collapse-id', 'collapseId'],
  ['pgw-priority', 'priority'],
  ['apns-priority', 'priority'],
  ['pgw-push-type', 'pushType'],
  ['apns-push-type', 'pushType'],
]);

/** Members meant for Android only (protocol/push.md#android-content). */
const foreignMembers = new Set(['silent', 'action', '_notificationChannel', '__proto__']);

/** The longest number a spliced badge may have. */
const badgeDigits = 10;
const maxCollapseBytes = 64;

/** Where the number starts: `badge` is always the first member of the first member. */
const badgeAt = Buffer.byteLength('{"aps":{"badge":');

/**
 * Renders the shared part of a message. The objects of other device types are left out, `ios` is merged
 * over the default members. `badge: "Increment"` leaves a gap at `badgeAt`.
 */
export function renderApns(message: PushMessage): Rendering<ApnsPayload> {
  try {
    return { ok: true, payload: render(message) };
  } catch (error) {
    if (error instanceof PayloadError) return { ok: false, error: error.message };
    throw error;
  }
}

/** The body as one device gets it; a counted badge is shown as the first one. */
export function previewApns({ body, badgeAt: at }: ApnsPayload): string {
  const text = body.toString('utf8');
  // What stands before the gap is ASCII: bytes are characters there.
  return at === undefined ? text : `${text.slice(0, at)}1${text.slice(at)}`;
}

function render(message: PushMessage): ApnsPayload {
  const { ios, ...defaults } = message.data;
  if (ios !== undefined && !isJsonObject(ios)) throw new PayloadError('ios must be an object');
  const parts = mergeLayers(defaults, ios ?? {});
  const aps = withoutEmpty(checkAps(parts.aps));
  const control = checkControl(parts, aps);
  const isSpliced = aps.badge === 'Increment';
  const body = Buffer.from(textOfBody(aps, parts.custom, isSpliced));
  const { maxBytes, isShown = false } = pushTypeOf(control.pushType);
  // Without an id from the sender the push gets one of its own: a repeat replaces the same notification and no other
  // (protocol/apns.md#repeats). Only what the system itself shows is replaced; apps handle the other types themselves.
  const collapseId = control.collapseId ?? (isShown ? message.objectId : null);
  const bytes = body.length + (isSpliced ? badgeDigits : 0);
  if (bytes > maxBytes)
    throw new PayloadError(`the iOS payload has ${bytes} bytes; APNs takes at most ${maxBytes}`);
  return {
    body,
    ...(isSpliced ? { badgeAt } : {}),
    ...control,
    collapseId,
    isRepeatHidden: isShown && collapseId !== null,
    // A call that nobody can take any more must not ring later (protocol/apns.md#push-types).
    expiration: control.pushType === 'voip' ? '0' : String(Math.ceil(message.expiresAtMs / 1000)),
  };
}

interface Parts {
  aps: JsonObject;
  control: JsonObject;
  custom: JsonObject;
  isApsLayout: boolean;
}

/** The default members and those of `ios`, each in either layout; the later wins member by member. */
function mergeLayers(defaults: JsonObject, ios: JsonObject): Parts {
  const parts: Parts = { aps: {}, control: {}, custom: {}, isApsLayout: false };
  for (const layer of [defaults, ios]) {
    const { aps, ...flat } = layer;
    for (const [name, value] of Object.entries(flat)) {
      const control = controlMembers.get(name);
      if (dataKeyOwners.has(name) || foreignMembers.has(name)) continue;
      if (control) parts.control[control] = value;
      else if (apsMembers.has(name)) parts.aps[name] = value;
      else parts.custom[name] = value;
    }
    if (aps === undefined) continue;
    if (!isJsonObject(aps)) throw new PayloadError('aps must be an object');
    Object.assign(parts.aps, aps);
    parts.isApsLayout = true;
  }
  return parts;
}

function checkControl(
  parts: Parts,
  aps: JsonObject,
): Pick<ApnsPayload, 'pushType' | 'priority' | 'collapseId'> {
  const { priority } = parts.control;
  if (priority !== undefined && priority !== 10 && priority !== 5)
    throw new PayloadError('pgw-priority must be 10 or 5');
  const pushType = checkPushType(parts, aps);
  // protocol/apns.md#push-types: priority 10 is an error for background pushes.
  if (parts.control.pushType === 'background' && priority === 10)
    throw new PayloadError('pgw-priority must be 5 when pgw-push-type is background');
  return {
    pushType,
    priority: priority === 5 || pushType === 'background' ? '5' : '10',
    collapseId: checkCollapseId(parts.control.collapseId),
  };
}

/**
 * The push type that fits what there is to show. A push without alert, badge and sound is `background` where it has
 * `content-available`; else APNs has nothing to deliver, and an `alert` push with an empty `aps` breaks its rules
 * (protocol/apns.md#push-types). Types that apps handle themselves need nothing to show.
 */
function checkPushType(parts: Parts, aps: JsonObject): string {
  const given = parts.control.pushType ?? 'alert';
  const allowed = parts.isApsLayout ? allPushTypes : plainPushTypes;
  if (typeof given !== 'string' || !allowed.includes(given))
    throw new PayloadError(`pgw-push-type must be one of ${allowed.join(', ')}`);
  if (!plainPushTypes.includes(given) || isShowing(aps)) return given;
  if (aps['content-available'] === 1) return 'background';
  throw new PayloadError('iOS content needs an alert, a badge, a sound or content-available');
}

function checkCollapseId(value: unknown): string | null {
  if (value === undefined || value === null || value === '') return null;
  const id = textOf('collapse-id', value);
  if (Buffer.byteLength(id) > maxCollapseBytes)
    throw new PayloadError(`collapse-id must have at most ${maxCollapseBytes} bytes`);
  // A header takes visible ASCII; the same other text always becomes the same digest, so it still groups.
  return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(id)
    ? id
    : createHash('sha256').update(id).digest('base64url');
}

/**
 * The body as text, with a gap for the badge when it is spliced. Written by hand because JavaScript puts
 * names that look like numbers before all others, and `badge` must come first.
 */
function textOfBody(aps: JsonObject, custom: JsonObject, isSpliced: boolean): string {
  const { badge, ...others } = aps;
  const badgeMember = badge === undefined ? [] : [`"badge":${isSpliced ? '' : JSON.stringify(badge)}`];
  const apsText = `{${[...badgeMember, ...membersOf(others)].join(',')}}`;
  return `{${[`"aps":${apsText}`, ...membersOf(custom)].join(',')}}`;
}

/** The members of an object as JSON text, without the braces around them; none for an empty object. */
function membersOf(object: JsonObject): string[] {
  const text = JSON.stringify(object).slice(1, -1);
  return text === '' ? [] : [text];
}
