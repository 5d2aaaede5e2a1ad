import { type Code, isCode, type Language, textIn } from './texts/catalogue.ts';

/** Code of a reason of the catalogue. */
export type ReasonCode = Code<'reasons'>;

/**
 * Texts of reasons that are sentences or have values (`{name}`), by code. Any other code of the
 * catalogue is its own text, such as `BadDeviceToken`.
 */
export const reasonTemplates = {
  // Limits.
  appCap: 'the daily recipient cap of {cap} is reached',
  deviceCap: 'the device has had its {cap} pushes of the day',
  testLimit: 'test pushes go to at most {devices} devices, {times} times a day',
  massPushWithDevelopment: 'dev profile disabled for massive push',
  // Time.
  expired: 'expired before it was sent',
  expiredAfterTry: 'expired; the last try: {why}',
  localTimePassed: 'its local time had passed when the push was called',
  quietHours: 'it expires before the quiet hours of the device end',
  retriesExhausted: 'retries exhausted: {why}',
  // Responses and connections.
  fieldRefused: 'field_refused_{field}',
  httpFailure: 'http_{status}',
  httpRefusal: 'http_{status}',
  smsStatus: 'status_{status}',
  unknown_code: 'unknown code {vendorCode}',
  certificateUntrusted: '{cause}',
  connectionCode: '{cause}',
  proxyRefused: '{cause}',
  tlsFailed: '{cause}',
  mailboxUnavailable: 'mailbox unavailable',
  // Credentials.
  caExpired: 'A certificate in ca expired on {day}: replace it.',
  certificateEnded: 'The certificate expired on {day}: upload a new one.',
  certificateEnds: 'The certificate expires on {day}: upload a new one before.',
  certificateEnvironment:
    'The certificate is for the APNs environment {environment} only: set "environment" to it.',
  certificateNotYet: 'The certificate is not valid before {day}: check the clock of this machine.',
  certificateOfOtherApp:
    'The certificate is for another bundle id than the topic of the profile: check the topic.',
  certificateUnnamed:
    "The certificate names no bundle id, as Apple's push certificates do: check that it is one.",
  hybridOff: 'hybridPush is off: no device gets pushes by these credentials.',
  noServiceAccount: 'the profile has no serviceAccount',
  // Ways to a device.
  certificateTopic: 'the certificate does not serve the topic {topic}',
  foreignTopic: 'the topic {topic} is not among those of the profile',
  installationDeleted: 'the installation was deleted',
  needsTokenAuthentication: 'the push type {type} needs token authentication',
  noApnsCertificateNamed: 'no APNs certificate named {profile}',
  noApnsCertificateOfEnvironment: 'no APNs certificate serves the {environment} environment',
  noApnsProfile: 'the app has no APNs profile',
  noApnsProfileOfEnvironment: 'no APNs profile serves the {environment} environment',
  noApnsProfileOfTeam: 'no APNs profile of that team',
  noApnsProfileOfTopic: 'no APNs profile owns the topic',
  noDeviceToken: 'the installation has no deviceToken',
  noInstallationId: 'the installation has no installationId',
  noProfileNamed: 'there is no {connector} profile named {profile}',
  noTopic: 'neither the installation nor the push names a topic, and the profile lists several',
  notOnThisServer: '{connector} is not available on this server',
  registrationMalformed: 'the registration id is malformed',
  severalTeams: 'several teams own the topic: name one by pgw_team_id',
  tokenNotHexadecimal: 'the device token is not hexadecimal',
  // Content that a gateway does not take.
  missingMember: '{connector} needs a {member}',
  silentNotSupported: '{connector} does not support silent messages',
  tooLargeWithValues: 'the message is too large with the values of the installation',
} as const satisfies Partial<Record<ReasonCode, string>>;

type Templates = typeof reasonTemplates;

/** Names of the values in a template. */
type NamesIn<T extends string> = T extends `${string}{${infer Name}}${infer Rest}`
  ? Name | NamesIn<Rest>
  : never;

type Values = Readonly<Record<string, string | number>>;

/** Ends the text of a stored reason; no text contains it. */
const separator = '\t';

/**
 * Makes a stored reason, as tables keep it: its text, and after a tab its code and values, such as
 * `http_503⇥httpFailure {"status":"503"}`. SQL filters and counts by the text, and readers find the
 * code without searching the text. The value `why` is a stored reason itself.
 */
export function reason<C extends keyof Templates>(
  code: C,
  ...[values]: NamesIn<Templates[C]> extends never
    ? []
    : [Record<NamesIn<Templates[C]>, string | number>]
): string {
  const known: Values = values ?? {};
  const text = reasonTemplates[code].replaceAll(/\{(\w+)\}/g, (_all, name: string) => {
    const value = String(known[name] ?? '');
    return name === 'why' ? reasonText(value) : value;
  });
  return reasonAs(text, code, known);
}

/** Makes a stored reason with a text of its own. */
export function reasonAs(text: string, code: string, values: Values = {}): string {
  const entries = Object.entries(values).map(([name, value]) => [name, String(value)]);
  const line = text.replaceAll(separator, ' ');
  if (entries.length === 0) return line === code ? code : `${line}${separator}${code}`;
  return `${line}${separator}${code} ${JSON.stringify(Object.fromEntries(entries))}`;
}

/** Stored reason in its parts. */
export interface ReadReason {
  /** Text in records, metrics, logs and replies. */
  text: string;
  /**
   * Code of the catalogue. For a text without a code, such as one of a version before, the text
   * itself.
   */
  code: string;
  params: Record<string, string>;
}

/** Reads a stored reason. */
export function readReason(stored: string): ReadReason {
  const end = stored.indexOf(separator);
  if (end < 0) return { text: stored, code: stored, params: {} };
  const [text, key] = [stored.slice(0, end), stored.slice(end + 1)];
  const codeEnd = key.indexOf(' ');
  if (codeEnd < 0) return { text, code: key, params: {} };
  const values: unknown = JSON.parse(key.slice(codeEnd + 1));
  const params = Object.entries(values ?? {}).map(([name, value]) => [name, String(value)]);
  return { text, code: key.slice(0, codeEnd), params: Object.fromEntries(params) };
}

/** Returns the text of a stored reason. */
export function reasonText(stored: string): string {
  const end = stored.indexOf(separator);
  return end < 0 ? stored : stored.slice(0, end);
}

/**
 * Text as replies show it: the code and values from which it is written in a language. A reason has
 * its own `text`, as the gateway gave it.
 */
export type ShownText = { text?: string; code: string; params: ShownValues };

/** Values of a text as replies show them. */
export type ShownValues = { [name: string]: string | number | null | ShownText };

/** Values of a text that are stored reasons themselves. */
const storedValues: readonly string[] = ['why', 'hint'];

/** Returns the values of a text as replies show them, with reasons and sentences among them. */
export const shownValues = (values: Readonly<ShownValues>): ShownValues =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      shownValue(value, storedValues.includes(name)),
    ]),
  );

function shownValue(value: ShownValues[string], isStored: boolean): ShownValues[string] {
  if (isStored && typeof value === 'string' && value.includes(separator)) {
    const { text, code, params } = readReason(value);
    return { ...(text === '' ? {} : { text }), code, params: shownValues(params) };
  }
  return isShownText(value) ? { ...value, params: shownValues(value.params) } : value;
}

/** Tells whether a value of a text is a text itself. */
export const isShownText = (value: unknown): value is ShownText =>
  typeof value === 'object' && value !== null && 'code' in value && 'params' in value;

/** Returns the stored reason of a value `why` or `hint`, which a reply may show as an object. */
export function storedReason(value: unknown): string {
  if (!isShownText(value)) return String(value ?? '');
  const values = Object.entries(value.params).map(([name, inner]) => [name, storedReason(inner)]);
  return reasonAs(value.text ?? '', value.code, Object.fromEntries(values));
}

/**
 * Returns a stored reason of at most so many characters: a longer one is its shortened text,
 * without the code.
 */
export const shortenReason = (stored: string, maxChars: number): string =>
  stored.length <= maxChars ? stored : reasonText(stored).slice(0, maxChars);

const httpReasons = new Map<number, string>();

/** Returns the reason of an HTTP status that has no code of the gateway. */
export function httpReason(status: number): string {
  const known =
    httpReasons.get(status) ?? reason(status >= 500 ? 'httpFailure' : 'httpRefusal', { status });
  httpReasons.set(status, known);
  return known;
}

/** Puts the status of the gateway before a reason: `503 unavailable`. */
export function withStatus(status: number, stored: string): string {
  const { text, code, params } = readReason(stored);
  return reasonAs(`${status} ${text}`, code, { ...params, status });
}

/**
 * What the operator has to check after a reason: a code of the catalogue, with the values of its
 * text.
 */
export type Hint = HintCode | { code: HintCode; params: Values };
export type HintCode = Code<'hints'>;

/** Returns the text of a hint. */
export function hintText(hint: Hint, language: Language = 'en'): string {
  const { code, params }: { code: HintCode; params: Values } =
    typeof hint === 'string' ? { code: hint, params: {} } : hint;
  return textIn(language, 'hints', code, (name) => {
    const value = params[name];
    return value === undefined ? null : String(value);
  });
}

/**
 * Puts the hint for the operator behind a reason: `auth_failed: Meizu refuses the signature: check
 * appSecret.` The value `hint` is a stored reason itself, without its text.
 */
export function withHint(stored: string, hint: Hint): string {
  const { text, code, params } = readReason(stored);
  const key = typeof hint === 'string' ? reasonAs('', hint) : reasonAs('', hint.code, hint.params);
  return reasonAs(`${text}: ${hintText(hint)}`, code, { ...params, hint: key });
}

/** Reads the value `hint`; undefined for a text, as versions before stored it. */
export function readHint(stored: string): Hint | undefined {
  const { code, params } = readReason(stored);
  return isCode('hints', code) ? { code, params } : undefined;
}

/**
 * Puts the code of a broken connection behind a reason, and means that code: `connect_failed
 * ENOTFOUND`.
 */
export function withCause(stored: string, cause: string): string {
  const { text, code, params } = readReason(connectionReason(cause));
  return reasonAs(`${reasonText(stored)} ${text}`, code, params);
}

/** Codes of Node.js with a meaning of their own. */
const nodeCodes: ReadonlySet<string> = new Set<ReasonCode>([
  ...([
    'EAI_AGAIN',
    'ECONNREFUSED',
    'ECONNRESET',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'ENOTFOUND',
  ] as const),
  ...(['EPIPE', 'ETIMEDOUT'] as const),
]);

/** Words in the codes of Node.js and OpenSSL for certificates that are not trusted, and for TLS. */
const certificateWords = ['CERT', 'SELF_SIGNED', 'ALTNAME', 'VERIFY', 'ISSUER'];
const tlsWords = ['SSL', 'TLS', 'EPROTO'];

/** Returns the reason of a broken connection, from the code of Node.js, OpenSSL or the proxy. */
export function connectionReason(cause: string): string {
  if (nodeCodes.has(cause)) return cause;
  if (cause.startsWith('PROXY_')) return reason('proxyRefused', { cause });
  const has = (word: string) => cause.includes(word);
  if (certificateWords.some(has)) return reason('certificateUntrusted', { cause });
  return reason(tlsWords.some(has) ? 'tlsFailed' : 'connectionCode', { cause });
}
