import { createHmac } from 'node:crypto';
import { isIP } from 'node:net';
import { z } from 'zod';
import { reason } from '../reasons.ts';

/** Delivery receipts of SMS providers (operate/mail-and-sms.md#receipts). */

/** Providers whose receipts come to an address with a secret, which the operator enters there. */
export const receiptProviders = ['aliyun', 'tencent'] as const;
export type ReceiptProvider = (typeof receiptProviders)[number];

/** A message of the outbox. */
export interface MessageKey {
  appId: string;
  id: string;
}

/**
 * Receipt of one message. Tencent Cloud names its own id of the message only; all others give back
 * the key that they were sent with.
 */
export interface SmsReceipt {
  message: MessageKey | { providerId: string };
  isDelivered: boolean;
  /** Stored reason if the message was not delivered. */
  reason: string | null;
}

/** Maximum receipts of a call. Aliyun and Tencent Cloud send far fewer. */
export const maxSmsReceipts = 1000;

/** Path that Twilio posts the status of a message to. */
const twilioPath = ({ appId, id }: MessageKey): string => `/sms-receipts/twilio/${appId}/${id}`;

/**
 * Returns the address for the receipts of a message, or undefined if Twilio cannot reach
 * `publicUrl`: it refuses a message whose address has a host of this machine (error 21609).
 */
export function receiptUrl(publicUrl: string, message: MessageKey): string | undefined {
  const host = new URL(publicUrl).hostname;
  const isLocal = host === 'localhost' || host === '[::1]' || /^127\./.test(host);
  // Twilio takes names and public addresses. A private address would only lead to failed calls.
  const isPrivate = isIP(host) === 4 && /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.)/.test(host);
  return isLocal || isPrivate ? undefined : `${publicUrl}${twilioPath(message)}`;
}

/**
 * Returns the signature of a callback of Twilio: HMAC-SHA1 of the address and the sorted parameters
 * (Twilio, "Validating requests", `X-Twilio-Signature`).
 */
export function twilioSignature(authToken: string, url: string, form: URLSearchParams): string {
  const parameters = [...new Set(form.keys())]
    .toSorted()
    .flatMap((name) => [...new Set(form.getAll(name))].toSorted().map((value) => name + value));
  return createHmac('sha1', authToken)
    .update(url + parameters.join(''))
    .digest('base64');
}

/** Returns the address that a callback of Twilio is signed for. */
export const twilioUrl = (publicUrl: string, message: MessageKey): string =>
  `${publicUrl}${twilioPath(message)}`;

const delivered = new Set(['delivered', 'read']);
const undelivered = new Set(['undelivered', 'failed', 'canceled']);

/** Reads a callback of Twilio. Returns undefined for a state that is not final. */
export function readTwilioReceipt(
  message: MessageKey,
  form: URLSearchParams,
): SmsReceipt | undefined {
  const status = form.get('MessageStatus') ?? form.get('SmsStatus') ?? '';
  if (delivered.has(status)) return { message, isDelivered: true, reason: null };
  if (!undelivered.has(status)) return undefined;
  return { message, isDelivered: false, reason: undeliveredFor(form.get('ErrorCode') ?? status) };
}

const aliyunReceipts = z
  .array(
    z.object({
      success: z.boolean(),
      err_code: z.string().catch(''),
      // Absent if the message was sent without it.
      out_id: z.string().catch(''),
    }),
  )
  .max(maxSmsReceipts);
const tencentReceipts = z
  .array(
    z.object({
      report_status: z.enum(['SUCCESS', 'FAIL']),
      errmsg: z.string().catch(''),
      sid: z.string().min(1).max(200),
    }),
  )
  .max(maxSmsReceipts);

/** Key of a message in the member `OutId` of Aliyun. */
export const outIdOf = ({ appId, id }: MessageKey): string => `${appId}-${id}`;
const outIdPattern = /^(.{1,100})-(\d{1,15})$/;

/** Reads the receipts of a call. Returns undefined if the body has another form. */
export function readReceipts(provider: ReceiptProvider, body: unknown): SmsReceipt[] | undefined {
  if (provider === 'tencent')
    return tencentReceipts.safeParse(body).data?.map(({ report_status, errmsg, sid }) => {
      const isDelivered = report_status === 'SUCCESS';
      return {
        message: { providerId: sid },
        isDelivered,
        reason: isDelivered ? null : undeliveredFor(errmsg),
      };
    });
  return aliyunReceipts.safeParse(body).data?.flatMap(({ success, err_code, out_id }) => {
    // The account may also send messages of other programs.
    const [, appId, id] = outIdPattern.exec(out_id) ?? [];
    if (appId === undefined || id === undefined) return [];
    const reason = success ? null : undeliveredFor(err_code);
    return [{ message: { appId, id }, isDelivered: success, reason }];
  });
}

/** Reply that the provider expects. It repeats a call with another reply. */
export const receiptReplies: Readonly<Record<ReceiptProvider, Record<string, string | number>>> = {
  aliyun: { code: 0, msg: 'OK' },
  tencent: { result: 0, errmsg: 'OK' },
};

/** Form of an error code. Other texts could contain personal data. */
const codePattern = /^[A-Za-z0-9_.:-]{1,60}$/;

const undeliveredFor = (code: string): string =>
  reason('smsUndelivered', { vendorCode: codePattern.test(code) ? code : 'unknown' });
