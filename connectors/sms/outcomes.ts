import { minuteMs } from '../../shared/clock.ts';
import { type HintCode, reason, withHint } from '../../shared/domain/reasons.ts';
import type { HttpResult } from '../../shared/http/result.ts';
import type { ProviderResult } from '../provider.ts';

/**
 * Results of the built-in SMS providers. Each provider has a table from its error codes to these
 * kinds, so that the same cause has the same reason, hint and reaction for every provider.
 */

/** Kinds whose cause is a setting of the operator: every message fails until it is corrected. */
const settings = [
  'smsCredentials',
  'smsClock',
  'smsAccount',
  'smsBalance',
  'smsRight',
  'smsSignature',
  'smsTemplate',
  'smsSender',
  'smsQuota',
] as const;
/** Kinds whose cause is this message or its recipient. */
const messages = [
  'smsParameters',
  'smsContent',
  'smsNumber',
  'smsBarred',
  'smsRegion',
  'smsFrequency',
  'smsUnknown',
] as const;
/** Temporary kinds. `smsMinute` is a limit of the recipient that ends within a minute. */
const temporary = ['smsBusy', 'smsUnavailable', 'smsMinute'] as const;

type Setting = (typeof settings)[number];
type OfMessage = (typeof messages)[number];
type Temporary = (typeof temporary)[number];
/** Kind of an error code. Its name is the code of the reason and of the hint. */
export type ErrorKind = Setting | OfMessage | Temporary;

const isSetting = (kind: ErrorKind): kind is Setting => settings.some((one) => one === kind);
const isTemporary = (kind: ErrorKind): kind is Temporary => temporary.some((one) => one === kind);

/** Error codes of a provider by their kind. */
export type ErrorTable = Partial<Record<ErrorKind, readonly string[]>>;

/** Returns the function that finds the kind of a code. */
export function kindsOf(table: ErrorTable): (code: string) => ErrorKind | undefined {
  const kinds = new Map<string, ErrorKind>();
  for (const kind of [...settings, ...messages, ...temporary])
    for (const code of table[kind] ?? []) kinds.set(code, kind);
  return (code) => kinds.get(code);
}

/** Form of an error code. Other texts could contain a phone number. */
const codePattern = /^[A-Za-z][A-Za-z0-9_.-]{0,79}$|^\d{3,6}$/;

/** Returns the result for an error code of a provider. */
export function resultOf(
  kind: ErrorKind,
  { provider, code, afterMs = null }: { provider: string; code: string; afterMs?: number | null },
): ProviderResult {
  const vendorCode = codePattern.test(code) ? code : 'unreadable';
  const hint: HintCode = kind === 'smsMinute' ? 'smsFrequency' : kind;
  const why = withHint(reason(hint, { provider, vendorCode }), {
    code: hint,
    params: { provider },
  });
  if (isTemporary(kind))
    return { kind: 'retry', reason: why, afterMs: kind === 'smsMinute' ? minuteMs : afterMs };
  return isSetting(kind)
    ? { kind: 'refused', reason: why, isSetting: true }
    : { kind: 'refused', reason: why };
}

/** Refuses a voice call, which the built-in providers do not make. */
export const refuseVoice = (provider: string): ProviderResult => ({
  kind: 'refused',
  reason: withHint(reason('smsNoVoice', { provider }), 'smsNoVoice'),
});

/** Refuses a message whose template has no entry for the provider. */
export const refuseTemplate = (provider: string, template: string): ProviderResult => ({
  kind: 'refused',
  reason: withHint(reason('smsNoTemplate', { provider, template }), {
    code: 'smsNoTemplate',
    params: { provider, template },
  }),
  isSetting: true,
});

/**
 * Returns the result of a request without a reply of the provider: no response, or the page of a
 * proxy or portal, which says nothing about the message or the credentials.
 */
export function withoutCode(provider: string, reply: HttpResult): ProviderResult {
  if (reply.kind !== 'response') return { kind: 'retry', reason: reply.reason, afterMs: null };
  const kind = reply.status === 429 ? 'smsBusy' : 'smsUnavailable';
  return resultOf(kind, { provider, code: String(reply.status), afterMs: reply.retryAfterMs });
}
