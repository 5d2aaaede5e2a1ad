/**
 * Renders `data` of a push as body and headers of APNs (protocol/push.md#ios-content, protocol/push.md#content,
 * protocol/apns.md#request). Pure; reports wrong types as an error.
 */
import { createHash } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';
import { dataKeyOwners } from '../../shared/domain/labels.ts';
import type { PushMessage, Rendering } from '../contract/connector.ts';
import { checkAps, isShowing, PayloadError, textOf, withoutEmpty } from './aps.ts';
import { allPushTypes, plainPushTypes, pushTypeOf } from './push-types.ts';

/** Rendered push, the part that all recipients share. */
export interface ApnsPayload extends Omit<ApnsText, 'text' | 'bytes' | 'maxBytes'> {
  /** The body, with a gap for the badge number if it is counted. */
  body: Buffer;
}

/** Rendered push with its body as a text. */
export interface ApnsText {
  text: string;
  /** Bytes of the body, with the longest badge if it is counted, and the most that APNs takes. */
  bytes: number;
  maxBytes: number;
  /** Offset of each recipient's badge; absent: all recipients have the same body. */
  badgeAt?: number;
  pushType: string;
  priority: '5' | '10';
  /** `apns-collapse-id`: replaces the notification with the same id; null: no such header. */
  collapseId: string | null;
  /** The device shows repeats once. */
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

/** Members for Android only (protocol/push.md#android-content). */
const foreignMembers = new Set(['silent', 'action', '_notificationChannel', '__proto__']);

/** Most digits of a counted badge. */
const badgeDigits = 10;
const maxCollapseBytes = 64;

/** Offset of the number: `badge` is always the first member of `aps`, which comes first. */
const badgeAt = Buffer.byteLength('{"aps":{"badge":');

/**
 * Renders the shared part of a message: leaves out objects of other device types, and merges `ios` over the default
 * members. `badge: "Increment"` leaves a gap at `badgeAt`.
 */
export function renderApns(message: PushMessage): Rendering<ApnsPayload> {
  const rendering = renderApnsText(message);
  if (!rendering.ok) return rendering;
  const { text, bytes: _, maxBytes: _most, ...shared } = rendering.payload;
  return { ok: true, payload: { ...shared, body: Buffer.from(text) } };
}

/** As `renderApns`, with the body as a text, for texts that differ by recipient. */
export function renderApnsText(message: PushMessage): Rendering<ApnsText> {
  try {
    return { ok: true, payload: render(message) };
  } catch (error) {
    if (error instanceof PayloadError) return { ok: false, error: error.message };
    throw error;
  }
}

/** Returns the body as one device receives it, with 1 for a counted badge. */
export function previewApns({ body, badgeAt: at }: ApnsPayload): string {
  const text = body.toString('utf8');
  // The text before the gap is ASCII: bytes equal characters.
  return at === undefined ? text : `${text.slice(0, at)}1${text.slice(at)}`;
}

function render(message: PushMessage): ApnsText {
  const { ios, ...defaults } = message.data;
  if (ios !== undefined && !isJsonObject(ios)) throw new PayloadError('ios must be an object');
  const content = mergeLayers(defaults, ios ?? {});
  const aps = withoutEmpty(checkAps(content.aps));
  const control = checkControl(content, aps);
  const isSpliced = aps.badge === 'Increment';
  const text = textOfBody(aps, content.custom, isSpliced);
  const { maxBytes, isShown = false } = pushTypeOf(control.pushType);
  // Without a collapse id the push's own id is used: a repeat replaces the same notification and no other
  // (protocol/apns.md#repeats). Only for types that the system shows; apps handle the others.
  const collapseId = control.collapseId ?? (isShown ? message.objectId : null);
  const bytes = Buffer.byteLength(text) + (isSpliced ? badgeDigits : 0);
  if (bytes > maxBytes) throw new PayloadError(tooLarge(bytes, maxBytes));
  return {
    text,
    bytes,
    maxBytes,
    ...(isSpliced ? { badgeAt } : {}),
    ...control,
    collapseId,
    isRepeatHidden: isShown && collapseId !== null,
    // An expired call must not ring later (protocol/apns.md#push-types).
    expiration: control.pushType === 'voip' ? '0' : String(Math.ceil(message.expiresAtMs / 1000)),
  };
}

/** Tells that a body is too large for APNs. */
export const tooLarge = (bytes: number, maxBytes: number): string =>
  `the iOS payload has ${bytes} bytes; APNs takes at most ${maxBytes}`;

interface MergedContent {
  aps: JsonObject;
  control: JsonObject;
  custom: JsonObject;
  isApsLayout: boolean;
}

/** Merges the default members and those of `ios`, each in either layout; the latter win. */
function mergeLayers(defaults: JsonObject, ios: JsonObject): MergedContent {
  const content: MergedContent = { aps: {}, control: {}, custom: {}, isApsLayout: false };
  for (const layer of [defaults, ios]) {
    const { aps, ...flat } = layer;
    for (const [name, value] of Object.entries(flat)) {
      const control = controlMembers.get(name);
      if (dataKeyOwners.has(name) || foreignMembers.has(name)) continue;
      if (control) content.control[control] = value;
      else if (apsMembers.has(name)) content.aps[name] = value;
      else content.custom[name] = value;
    }
    if (aps === undefined) continue;
    if (!isJsonObject(aps)) throw new PayloadError('aps must be an object');
    Object.assign(content.aps, aps);
    content.isApsLayout = true;
  }
  return content;
}

function checkControl(
  content: MergedContent,
  aps: JsonObject,
): Pick<ApnsPayload, 'pushType' | 'priority' | 'collapseId'> {
  const { priority } = content.control;
  if (priority !== undefined && priority !== 10 && priority !== 5)
    throw new PayloadError('pgw-priority must be 10 or 5');
  const pushType = checkPushType(content, aps);
  // protocol/apns.md#push-types: priority 10 is an error for background pushes.
  if (content.control.pushType === 'background' && priority === 10)
    throw new PayloadError('pgw-priority must be 5 when pgw-push-type is background');
  return {
    pushType,
    priority: priority === 5 || pushType === 'background' ? '5' : '10',
    collapseId: checkCollapseId(content.control.collapseId),
  };
}

/**
 * Returns the push type that fits the content. A push without alert, badge and sound is `background` if it has
 * `content-available`, else an error: APNs refuses an `alert` push with an empty `aps` (protocol/apns.md#push-types). Types
 * that apps handle need nothing to show.
 */
function checkPushType(content: MergedContent, aps: JsonObject): string {
  const given = content.control.pushType ?? 'alert';
  const allowed = content.isApsLayout ? allPushTypes : plainPushTypes;
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
  // A header accepts visible ASCII only; other ids are replaced by their digest.
  return /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(id)
    ? id
    : createHash('sha256').update(id).digest('base64url');
}

/**
 * Returns the body as text, with a gap for a counted badge. Assembled by hand because JavaScript orders number-like names
 * first, and `badge` must come first.
 */
function textOfBody(aps: JsonObject, custom: JsonObject, isSpliced: boolean): string {
  const { badge, ...others } = aps;
  const badgeMember = badge === undefined ? [] : [`"badge":${isSpliced ? '' : JSON.stringify(badge)}`];
  const apsText = `{${[...badgeMember, ...membersOf(others)].join(',')}}`;
  return `{${[`"aps":${apsText}`, ...membersOf(custom)].join(',')}}`;
}

/** Returns the members of an object as JSON text without braces, as a list of at most one. */
function membersOf(object: JsonObject): string[] {
  const text = JSON.stringify(object).slice(1, -1);
  return text === '' ? [] : [text];
}
