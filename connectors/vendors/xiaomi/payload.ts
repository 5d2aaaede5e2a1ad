/**
 * Renders `data` of a push as Xiaomi's form fields (protocol/xiaomi.md#fields; protocol/push.md#what-a-tap-opens): a
 * notification with the whole push as JSON in `payload`, or that payload alone if it is silent. Pure.
 */
import { createHash } from 'node:crypto';
import { dayMs } from '../../../shared/clock.ts';
import type { Capabilities, ConnectorLimits, PushMessage, Rendering } from '../../contract/connector.ts';
import { type AndroidContent, androidContent, bodySizeError, titleOf } from '../../kit/android.ts';
import { formError, vendorFields } from './fields.ts';

/** The system increments the badge (protocol/push.md#badges-by-vendor). */
export const can: Capabilities = { passThrough: true, badge: false, collapse: true };

/**
 * 1000 devices; "less than 50" and "less than 128" characters (protocol/xiaomi.md#fields,
 * protocol/gateways.md#text-lengths); 4 KB, as commonly quoted.
 */
export const limits: ConnectorLimits = {
  recipientsPerRequest: 1000,
  bodyBytes: 4096,
  titleChars: 49,
  alertChars: 127,
};

/** Rendered push: the form without devices, package and URL for receipts. */
export interface XiaomiPayload {
  fields: Readonly<Record<string, string>>;
  /** Message class whose day quota applies: each category of the console has one. */
  messageClass: string;
  /** The device shows only the first notification of a job. Pass-through messages repeat. */
  isRepeatHidden: boolean;
}

/** Longest time to live (protocol/xiaomi.md#fields): ten days in a category of the console, else one. */
const longestMs = { ofCategory: 10 * dayMs, ofDefault: dayMs };

/**
 * Renders a push for Xiaomi; `nowMs` is the send time, from which the time to live is computed. The vendor's object may
 * hold fields of Xiaomi, or be a complete message of them (then it needs no alert).
 */
export function renderXiaomi(
  message: PushMessage,
  nowMs: number = message.createdAtMs,
): Rendering<XiaomiPayload> {
  const content = androidContent(message, {
    connector: 'vendor_b',
    can,
    limits,
    isNative: ({ description, payload }) => typeof description === 'string' || payload !== undefined,
  });
  if (!content.ok) return content;
  const own = vendorFields(content.payload.vendor, content.payload.vendorKey);
  if (!own.ok) return own;
  const fields = new Map([...Object.entries(baseFields(content.payload, message)), ...own.payload]);
  const isPassThrough = fields.get('pass_through') === '1';
  if (!isPassThrough && !fields.get('title')?.trim() && fields.has('description'))
    fields.set('title', titleOf({ ...content.payload, alert: fields.get('description') ?? '' }, 49));
  if (!isPassThrough) setEffect(fields);
  const problem = formError(fields, { key: content.payload.vendorKey, isPassThrough });
  if (problem !== null) return { ok: false, error: problem };
  setLife(fields, message.expiresAtMs - nowMs);
  const tooLarge = bodySizeError('vendor_b', sizeOf(fields), limits);
  if (tooLarge) return tooLarge;
  return {
    ok: true,
    payload: {
      fields: Object.fromEntries(fields),
      messageClass: fields.get('extra.channel_id') ?? 'default',
      isRepeatHidden: !isPassThrough,
    },
  };
}

/** Returns the form as one device receives it, as JSON. */
export const previewXiaomi = ({ fields }: XiaomiPayload): string => JSON.stringify(fields);

function baseFields(content: AndroidContent, { objectId }: PushMessage): Record<string, string> {
  const { alert, data, notificationChannel, silent, title } = content;
  const fields: Record<string, string> = { payload: JSON.stringify(data), pass_through: silent ? '1' : '0' };
  if (notificationChannel !== null) fields['extra.channel_id'] = notificationChannel;
  if (silent) return fields;
  // A native body may have its own texts.
  const shown = titleOf(content, 49);
  if (title !== null || shown !== '') fields.title = shown;
  if (alert.trim() !== '') fields.description = alert;
  const collapseId = data['collapse-id'];
  const group = typeof collapseId === 'string' && collapseId !== '' ? collapseId : objectId;
  fields.notify_type = '-1';
  // The same for every attempt: a repeat replaces the notification, another push does not (protocol/gateways.md#repeats).
  fields.notify_id = String(notifyIdOf(group));
  fields['extra.jobkey'] = objectId;
  return fields;
}

/** 0 to 2147483647. */
const notifyIdOf = (text: string): number =>
  createHash('sha256').update(text).digest().readUInt32BE(0) & 0x7fff_ffff;

/**
 * Sets what a tap does, if the push does not: Xiaomi no longer takes notifications without it
 * (protocol/xiaomi.md#what-a-tap-does).
 */
function setEffect(fields: Map<string, string>): void {
  if (fields.has('extra.notify_effect')) return;
  const target = fields.has('extra.intent_uri') ? '2' : fields.has('extra.web_uri') ? '3' : '1';
  fields.set('extra.notify_effect', target);
}

/**
 * Sets the time to live in milliseconds (protocol/gateways.md#time-to-live); with less than a second, only online
 * devices get it.
 */
function setLife(fields: Map<string, string>, leftMs: number): void {
  const longest = fields.has('extra.channel_id') ? longestMs.ofCategory : longestMs.ofDefault;
  const asked = Number(fields.get('time_to_live') ?? longest);
  fields.set('time_to_live', String(Math.max(1000, Math.min(leftMs, asked, longest))));
  if (leftMs < 1000) fields.set('extra.only_send_once', '1');
}

/** Returns the bytes that the device receives. */
function sizeOf(fields: ReadonlyMap<string, string>): number {
  let bytes = 0;
  for (const [name, value] of fields)
    if (/^(title|description|payload|extra\..*)$/s.test(name)) bytes += Buffer.byteLength(value);
  return bytes;
}
