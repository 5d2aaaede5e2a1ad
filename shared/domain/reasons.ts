import { type Code, isCode, type Language, textIn } from './texts/catalogue.ts';

/** Code of a reason in the catalogue. */
export type ReasonCode = Code<'reasons'>;

/**
 * Texts of reasons that are sentences or contain values (`{name}`), by code. Each other code of the
 * catalogue is its own text, for example `BadDeviceToken`.
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
  conditionFailed: 'the database cannot evaluate the condition of the push',
  localTimePassed: 'its local time had passed when the push was called',
  quietHours: 'it expires before the quiet hours of the device end',
  retriesExhausted: 'retries exhausted: {why}',
  // Responses and connections.
  fieldRefused: 'field_refused_{field}',
  httpFailure: 'http_{status}',
  httpRefusal: 'http_{status}',
  smsStatus: 'status_{status}',
  smsCredentials: '{provider} refuses the credentials of SMS_URL ({vendorCode})',
  smsClock: '{provider} finds the time of the request wrong ({vendorCode})',
  smsAccount: '{provider} does not serve the account ({vendorCode})',
  smsBalance: 'the balance at {provider} is used up ({vendorCode})',
  smsRight: 'the credentials at {provider} lack a right ({vendorCode})',
  smsSignature: '{provider} refuses the signature ({vendorCode})',
  smsTemplate: '{provider} refuses the template or its parameters ({vendorCode})',
  smsSender: '{provider} refuses the sender ({vendorCode})',
  smsQuota: 'a limit of the account at {provider} is used up ({vendorCode})',
  smsParameters: '{provider} refuses the values of the message ({vendorCode})',
  smsContent: '{provider} refuses the content ({vendorCode})',
  smsNumber: '{provider} refuses the phone number ({vendorCode})',
  smsBarred: 'the recipient opted out, or is on a list of {provider} ({vendorCode})',
  smsRegion: '{provider} does not send to this country ({vendorCode})',
  smsFrequency: 'the phone number has had its messages at {provider} ({vendorCode})',
  smsBusy: '{provider} limits the rate ({vendorCode})',
  smsUnavailable: '{provider} is out of order ({vendorCode})',
  smsUnknown: '{provider} refuses the message ({vendorCode})',
  smsNoTemplate: 'the template {template} has no entry for {provider}',
  smsNoVoice: '{provider} makes no voice calls here',
  smsUndelivered: 'the SMS did not reach the device ({vendorCode})',
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
  // Routes to a device.
  activitySuperseded: 'a newer state of the activity was sent before the retry',
  activityTokenGone: 'the token of the Live Activity ended or was replaced',
  certificateTopic: 'the certificate does not serve the topic {topic}',
  foreignTopic: 'the topic {topic} is not among those of the profile',
  installationDeleted: 'the installation was deleted',
  needsCertificate: 'the push type {type} needs a certificate',
  needsTokenAuthentication: 'the push type {type} needs token authentication',
  noApnsCertificateNamed: 'no APNs certificate named {profile}',
  noApnsCertificateOfEnvironment: 'no APNs certificate serves the {environment} environment',
  noApnsProfile: 'the app has no APNs profile',
  noApnsProfileOfEnvironment: 'no APNs profile serves the {environment} environment',
  noApnsProfileOfTeam: 'no APNs profile of that team',
  noApnsProfileOfTopic: 'no APNs profile owns the topic',
  noDeviceToken: 'the installation has no deviceToken',
  notRecallable: '{connector} can neither recall nor replace the message',
  onDevice: 'the device has the message already, or it has expired',
  routeChanged: 'another gateway or profile serves the installation than the earlier push used',
  noInstallationId: 'the installation has no installationId',
  noProfileNamed: 'there is no {connector} profile named {profile}',
  noTopic: 'neither the installation nor the push names a topic, and the profile lists several',
  notOnThisServer: '{connector} is not available on this server',
  registrationMalformed: 'the registration id is malformed',
  noSubscription: 'the installation has no Web Push subscription',
  pushServiceNotListed: 'the push service is not listed: add it to WEBPUSH_HOSTS',
  subscriptionKeyUnknown: 'the profile no longer has the VAPID key of the subscription',
  severalTeams: 'several teams own the topic: name one by pgw_team_id',
  tokenNotHexadecimal: 'the device token is not hexadecimal',
  // Content that a gateway does not accept.
  classNeeds: '{connector} needs {member} for messages of the class {messageClass}',
  missingMember: '{connector} needs a {member}',
  silentNotSupported: '{connector} does not support silent messages',
  tooLargeWithValues: 'the message is too large with the values of the installation',
} as const satisfies Partial<Record<ReasonCode, string>>;

type Templates = typeof reasonTemplates;

/** Names of the values in a template, as a type. */
type NamesIn<T extends string> = T extends `${string}{${infer Name}}${infer Rest}`
  ? Name | NamesIn<Rest>
  : never;

type Values = Readonly<Record<string, string | number>>;

/** Separates the text of a stored reason from its code. Texts do not contain it. */
const separator = '\t';

/**
 * Builds a stored reason, the form in which tables keep a reason: its text, a tab, its code and its
 * values as JSON. Example: `http_503⇥httpFailure {"status":"503"}`. SQL filters and groups by the
 * text. The value `why` is itself a stored reason.
 */
export function reason<C extends keyof Templates>(
  code: C,
  ...[values]: NamesIn<Templates[C]> extends never
    ? []
    : [Record<NamesIn<Templates[C]>, string | number>]
): string {
  const params: Values = values ?? {};
  const text = reasonTemplates[code].replaceAll(/\{(\w+)\}/g, (_all, name: string) => {
    const value = String(params[name] ?? '');
    return name === 'why' ? reasonText(value) : value;
  });
  return reasonAs(text, code, params);
}

/**
 * Builds a stored reason with a text that is not in the catalogue. A value that was cut may end
 * with half of a character (a lone surrogate). PostgreSQL refuses it in JSON, and the results of
 * the whole batch with it.
 */
export function reasonAs(text: string, code: string, values: Values = {}): string {
  const entries = Object.entries(values).map(([name, value]) => [
    name,
    String(value).toWellFormed(),
  ]);
  const line = text.replaceAll(separator, ' ').toWellFormed();
  if (entries.length === 0) return line === code ? code : `${line}${separator}${code}`;
  return `${line}${separator}${code} ${JSON.stringify(Object.fromEntries(entries))}`;
}

/** Parts of a stored reason. */
export interface ReadReason {
  /** Text for records, metrics, logs and replies. */
  text: string;
  /**
   * Code of the catalogue. If the stored reason has no code, as earlier versions wrote it, the code
   * is the text.
   */
  code: string;
  params: Record<string, string>;
}

/** Parses a stored reason. */
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
 * Text in a reply: the code and the values from which a client writes a sentence in its language.
 * `text` is present for reasons, as the gateway or this service gave it.
 */
export type ReplyText = { text?: string; code: string; params: ReplyValues };

/** Values of a text in a reply. */
export type ReplyValues = { [name: string]: string | number | null | ReplyText };

/** Names of the values that are themselves stored reasons. */
const reasonValueNames: readonly string[] = ['why', 'hint'];

/**
 * Converts the values of a text to the form of replies. Values that are stored reasons become
 * objects.
 */
export const replyValues = (values: Readonly<ReplyValues>): ReplyValues =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      replyValue(value, reasonValueNames.includes(name)),
    ]),
  );

function replyValue(value: ReplyValues[string], isStored: boolean): ReplyValues[string] {
  if (isStored && typeof value === 'string' && value.includes(separator)) {
    const { text, code, params } = readReason(value);
    return { ...(text === '' ? {} : { text }), code, params: replyValues(params) };
  }
  return isReplyText(value) ? { ...value, params: replyValues(value.params) } : value;
}

/** True if a value is itself a text with a code. */
export const isReplyText = (value: unknown): value is ReplyText =>
  typeof value === 'object' && value !== null && 'code' in value && 'params' in value;

/** Returns the stored reason of a value `why` or `hint`. In a reply, the value may be an object. */
export function storedReason(value: unknown): string {
  if (!isReplyText(value)) return String(value ?? '');
  const values = Object.entries(value.params).map(([name, inner]) => [name, storedReason(inner)]);
  return reasonAs(value.text ?? '', value.code, Object.fromEntries(values));
}

/**
 * Shortens a stored reason to at most `maxChars` characters. A longer reason loses its code and the
 * end of its text.
 */
export const shortenReason = (stored: string, maxChars: number): string =>
  stored.length <= maxChars ? stored : reasonText(stored).slice(0, maxChars);

const httpReasons = new Map<number, string>();

/** Returns the reason for an HTTP status if the gateway gave no code. */
export function httpReason(status: number): string {
  const cached =
    httpReasons.get(status) ?? reason(status >= 500 ? 'httpFailure' : 'httpRefusal', { status });
  httpReasons.set(status, cached);
  return cached;
}

/** Prepends the gateway's status to a reason: `503 unavailable`. */
export function withStatus(status: number, stored: string): string {
  const { text, code, params } = readReason(stored);
  return reasonAs(`${status} ${text}`, code, { ...params, status });
}

/** What the operator has to check: a code of the catalogue, with the values for its text. */
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
 * Appends a hint for the operator to a reason: `auth_failed: Meizu refuses the signature: check
 * appSecret.` Stores the hint in the value `hint`, as a stored reason without text.
 */
export function withHint(stored: string, hint: Hint): string {
  const { text, code, params } = readReason(stored);
  const key = typeof hint === 'string' ? reasonAs('', hint) : reasonAs('', hint.code, hint.params);
  return reasonAs(`${text}: ${hintText(hint)}`, code, { ...params, hint: key });
}

/**
 * Parses the value `hint`. Returns undefined if it is a plain text, which earlier versions stored.
 */
export function readHint(stored: string): Hint | undefined {
  const { code, params } = readReason(stored);
  return isCode('hints', code) ? { code, params } : undefined;
}

/**
 * Appends the error code of a broken connection to a reason: `connect_failed ENOTFOUND`. The result
 * has the code of the connection error.
 */
export function withCause(stored: string, cause: string): string {
  const { text, code, params } = readReason(connectionReason(cause));
  return reasonAs(`${reasonText(stored)} ${text}`, code, params);
}

/** Error codes of Node.js that the catalogue contains. */
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

/**
 * Returns whether an error code of Node.js or OpenSSL means that we do not trust the certificate of
 * the other side. An alert comes from the other side, which may not trust ours.
 */
export const isUntrustedCertificate = (code: string): boolean =>
  /CERT|SELF_SIGNED|ALTNAME|VERIFY|ISSUER/.test(code) && !code.includes('ALERT');

/** Words in error codes that mean a TLS failure. */
const tlsWords = ['SSL', 'TLS', 'EPROTO'];

/** Returns the reason of a broken connection for an error code of Node.js, OpenSSL or the proxy. */
export function connectionReason(cause: string): string {
  if (nodeCodes.has(cause)) return cause;
  if (cause.startsWith('PROXY_')) return reason('proxyRefused', { cause });
  if (isUntrustedCertificate(cause)) return reason('certificateUntrusted', { cause });
  const isTls = tlsWords.some((word) => cause.includes(word));
  return reason(isTls ? 'tlsFailed' : 'connectionCode', { cause });
}
