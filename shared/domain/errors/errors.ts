import { type Code, type Language, textIn } from '../texts/catalogue.ts';
import { type Detail, writeText } from '../texts/texts.ts';

interface ErrorRow {
  code: number;
  status: number;
  /**
   * True if apps show the text to their users. The text is then in the language that the app
   * requests (protocol/errors.md#languages).
   */
  isForUsers?: true;
}

/**
 * All error replies of this service.
 *
 * Codes, texts and statuses follow protocol/errors.md#http-status and protocol/errors.md#codes. The
 * texts are in the section `errors` of the catalogue. A refusal contains only the public text. Its
 * `cause` is logged and never sent to a client.
 */
const table = {
  internal: { code: 1, status: 500, isForUsers: true },
  invalidParameter: { code: 1, status: 400 },
  masterKeyRequired: { code: 403, status: 403 },
  objectNotFound: { code: 101, status: 404 },
  noSuchFunction: { code: 1, status: 404 },
  noSuchObject: { code: 1, status: 400 },
  invalidQuery: { code: 102, status: 400 },
  missingObjectId: { code: 104, status: 400 },
  invalidKeyName: { code: 105, status: 400 },
  malformedPointer: { code: 106, status: 400 },
  malformedJson: { code: 107, status: 400 },
  incorrectType: { code: 111, status: 400 },
  invalidChannel: { code: 112, status: 400 },
  invalidDeviceToken: { code: 114, status: 400 },
  tooLarge: { code: 116, status: 400 },
  readOnlyKey: { code: 117, status: 400 },
  notForClients: { code: 119, status: 400, isForUsers: true },
  forbiddenName: { code: 121, status: 400 },
  invalidAcl: { code: 123, status: 400 },
  timedOut: { code: 124, status: 400 },
  // The timeout of a cloud function (protocol/functions.md#function-errors).
  functionTimedOut: { code: 124, status: 503 },
  invalidEmail: { code: 125, status: 400, isForUsers: true },
  invalidPhone: { code: 127, status: 400, isForUsers: true },
  // The members of a relation are unknown, or there are too many in one operation.
  invalidRelation: { code: 128, status: 400 },
  duplicate: { code: 137, status: 400, isForUsers: true },
  invalidRoleName: { code: 139, status: 400 },
  // The timeout of a hook (protocol/functions.md#hook-times).
  hookTimedOut: { code: 141, status: 400 },
  hookRefused: { code: 142, status: 400 },
  invalidPushTime: { code: 152, status: 400 },
  thresholdExceeded: { code: 154, status: 400, isForUsers: true },
  insufficientBalance: { code: 160, status: 400, isForUsers: true },
  usernameMissing: { code: 200, status: 400, isForUsers: true },
  passwordMissing: { code: 201, status: 400, isForUsers: true },
  usernameTaken: { code: 202, status: 400, isForUsers: true },
  emailTaken: { code: 203, status: 400, isForUsers: true },
  emailMissing: { code: 204, status: 400, isForUsers: true },
  emailUnknown: { code: 205, status: 400, isForUsers: true },
  // The session is stale (protocol/errors.md#http-status).
  sessionNeeded: { code: 206, status: 403, isForUsers: true },
  accountLinked: { code: 208, status: 400, isForUsers: true },
  passwordMismatch: { code: 210, status: 400, isForUsers: true },
  userNotFound: { code: 211, status: 400, isForUsers: true },
  phoneMissing: { code: 212, status: 400, isForUsers: true },
  phoneUnknown: { code: 213, status: 400, isForUsers: true },
  phoneTaken: { code: 214, status: 400, isForUsers: true },
  phoneUnverified: { code: 215, status: 400, isForUsers: true },
  emailUnverified: { code: 216, status: 400, isForUsers: true },
  invalidUsername: { code: 217, status: 400, isForUsers: true },
  invalidPassword: { code: 218, status: 400, isForUsers: true },
  accountLocked: { code: 219, status: 400, isForUsers: true },
  linkedIdMissing: { code: 250, status: 400, isForUsers: true },
  invalidLinkedSession: { code: 251, status: 400, isForUsers: true },
  invalidWeixinSession: { code: 252, status: 400, isForUsers: true },
  cqlSyntax: { code: 300, status: 400 },
  noEffect: { code: 305, status: 400 },
  unauthorized: { code: 401, status: 401 },
  forbidden: { code: 403, status: 403 },
  forbiddenFind: { code: 403, status: 403 },
  forbiddenCreate: { code: 403, status: 403 },
  forbiddenDelete: { code: 403, status: 403 },
  forbiddenReadByAcl: { code: 403, status: 403, isForUsers: true },
  forbiddenWriteByAcl: { code: 403, status: 403, isForUsers: true },
  // The `onLogin` hook refuses a login (protocol/functions.md#hooks: 401).
  loginRefused: { code: 401, status: 401, isForUsers: true },
  notFound: { code: 404, status: 404 },
  methodNotAllowed: { code: 405, status: 405 },
  requestTimeout: { code: 408, status: 408 },
  conflict: { code: 409, status: 409, isForUsers: true },
  payloadTooLarge: { code: 413, status: 413 },
  unsupportedMediaType: { code: 415, status: 415 },
  // Sent before a route is known, because the URL or the headers are too long.
  headersTooLarge: { code: 431, status: 431 },
  // A hook of an app calls itself (protocol/functions.md#ignored-hooks).
  tooManyHooks: { code: 431, status: 400 },
  tooManyRequests: { code: 429, status: 429, isForUsers: true },
  badGateway: { code: 502, status: 502 },
  unavailable: { code: 503, status: 503, isForUsers: true },
  // For the operator: CARILLON_SECRET is wrong or tables are missing. The log contains the details.
  misconfigured: { code: 503, status: 503, isForUsers: true },
  upstreamTimeout: { code: 524, status: 524 },
  invalidSmsSignature: { code: 600, status: 400, isForUsers: true },
  smsTooFrequent: { code: 601, status: 400, isForUsers: true },
  invalidSmsCode: { code: 603, status: 400, isForUsers: true },
  smsTemplateNotFound: { code: 604, status: 400, isForUsers: true },
  smsTemplateNotVerified: { code: 605, status: 400, isForUsers: true },
  smsTemplateFailed: { code: 606, status: 400 },
  // Clients know the texts of these errors (protocol/errors.md#texts-of-code-1).
  smsTooSoon: { code: 1, status: 400, isForUsers: true },
  emailVerificationOff: { code: 1, status: 400, isForUsers: true },
  tooManyMails: { code: 1, status: 400, isForUsers: true },
  wrongCaptcha: { code: 1, status: 400, isForUsers: true },
  validateTokenMissing: { code: 608, status: 400, isForUsers: true },
} as const satisfies Record<Code<'errors'>, ErrorRow>;

export type ErrorName = Code<'errors'>;

/** All errors by name. */
export const errorTable: Readonly<Record<ErrorName, ErrorRow>> = table;

/** Returns the text of an error in the table. */
export const errorText = (kind: ErrorName, language: Language = 'en'): string =>
  textIn(language, 'errors', kind);

export interface RefusalOptions {
  /** Public text that replaces the text of the table. Must not quote secrets, tokens or SQL. */
  text?: string | Detail | undefined;
  /** Seconds for the `Retry-After` header. */
  retryAfterSeconds?: number;
  /** Cause, for the log only. */
  cause?: unknown;
}

/** An error that becomes an error reply (`api/middleware/errors.ts`). */
export class Refusal extends Error {
  readonly kind: ErrorName;
  readonly code: number;
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;
  /** True if the text differs from the table's text. */
  readonly hasOwnText: boolean;
  /**
   * Code and values of the refusal's own text. Undefined if the text has no code; it is then
   * English only.
   */
  readonly detail: Detail | undefined;

  constructor(kind: ErrorName, { text, retryAfterSeconds, cause }: RefusalOptions = {}) {
    const detail = typeof text === 'object' ? text : undefined;
    const ownText = typeof text === 'object' ? writeText('details', text, 'en') : text;
    super(ownText ?? errorText(kind), { cause });
    this.name = 'Refusal';
    this.kind = kind;
    this.code = table[kind].code;
    this.status = table[kind].status;
    this.retryAfterSeconds = retryAfterSeconds;
    this.hasOwnText = ownText !== undefined;
    this.detail = detail;
  }
}

/** Creates a `Refusal`, optionally with its own text. */
export const refuse = (kind: ErrorName, text?: string | Detail): Refusal =>
  new Refusal(kind, { text });

/**
 * Returns the text of a refusal for an app. Texts for programmers, and texts that name a member or
 * value, are always English (protocol/errors.md#languages).
 */
export const messageIn = (language: Language, { kind, hasOwnText, message }: Refusal): string =>
  !hasOwnText && errorTable[kind].isForUsers ? errorText(kind, language) : message;

/** Returns the text of a refusal for an operator. A text without a code is always English. */
export function operatorMessage(
  language: Language,
  { kind, hasOwnText, message, detail }: Refusal,
): string {
  if (detail) return writeText('details', detail, language);
  return hasOwnText ? message : errorText(kind, language);
}
