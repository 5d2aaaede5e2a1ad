/**
 * Table of all error replies of this service.
 *
 * Codes, texts and statuses: protocol/errors.md#http-status and protocol/errors.md#codes. A refusal carries the public
 * text only; `cause` goes to the log and never to a client.
 */
const table = {
  internal: { code: 1, status: 500, text: 'Internal server error. No information available.' },
  invalidParameter: { code: 1, status: 400, text: 'Invalid parameter.' },
  masterKeyRequired: { code: 403, status: 403, text: 'The request must be signed by master key.' },
  objectNotFound: { code: 101, status: 404, text: "Object doesn't exist." },
  noSuchFunction: { code: 1, status: 404, text: 'No such cloud function.' },
  noSuchObject: { code: 1, status: 400, text: 'Could not find object.' },
  invalidQuery: { code: 102, status: 400, text: 'Invalid query.' },
  missingObjectId: { code: 104, status: 400, text: 'Missing object id.' },
  invalidKeyName: {
    code: 105,
    status: 400,
    text: "Invalid key name. Keys are case-sensitive and 'a-zA-Z0-9_' are the only valid characters.",
  },
  malformedPointer: { code: 106, status: 400, text: 'Malformed pointer.' },
  malformedJson: { code: 107, status: 400, text: 'Malformed json object. A json dictionary is expected.' },
  incorrectType: { code: 111, status: 400, text: 'Field set to incorrect type.' },
  invalidChannel: {
    code: 112,
    status: 400,
    text: "Invalid channel name. A channel name is either an empty string (the broadcast channel) or contains only a-zA-Z0-9_=, '-' or chinese characters.",
  },
  invalidDeviceToken: { code: 114, status: 400, text: 'Invalid device token.' },
  tooLarge: { code: 116, status: 400, text: 'The object is too large.' },
  readOnlyKey: { code: 117, status: 400, text: 'The key is read only.' },
  notForClients: { code: 119, status: 400, text: "That operation isn't allowed for clients." },
  forbiddenName: {
    code: 121,
    status: 400,
    text: "Keys in NSDictionary values may not include '$' or '.'.",
  },
  invalidAcl: { code: 123, status: 400, text: 'Invalid ACL. An ACL with an invalid format was saved.' },
  timedOut: {
    code: 124,
    status: 400,
    text: 'The request timed out on the server. Typically this indicates the request is too expensive.',
  },
  // Of a cloud function; protocol/functions.md#function-errors.
  functionTimedOut: { code: 124, status: 503, text: 'The request timed out on the server.' },
  invalidEmail: { code: 125, status: 400, text: 'The email address was invalid.' },
  invalidPhone: { code: 127, status: 400, text: 'The mobile phone number was invalid.' },
  // Members of a relation: too many at once, or unknown ones.
  invalidRelation: { code: 128, status: 400, text: 'Invalid relation data.' },
  duplicate: { code: 137, status: 400, text: 'A unique field was given a value that is already taken.' },
  invalidRoleName: { code: 139, status: 400, text: "Role's name is invalid." },
  // protocol/functions.md#hook-times.
  hookTimedOut: { code: 141, status: 400, text: 'LeanEngine request timeout.' },
  hookRefused: { code: 142, status: 400, text: 'Cloud Code validation failed.' },
  invalidPushTime: { code: 152, status: 400, text: 'Invalid push time.' },
  thresholdExceeded: { code: 154, status: 400, text: 'Exceeded an application threshold setting.' },
  insufficientBalance: { code: 160, status: 400, text: 'Insufficient balance.' },
  usernameMissing: { code: 200, status: 400, text: 'Username is missing or empty.' },
  passwordMissing: { code: 201, status: 400, text: 'Password is missing or empty.' },
  usernameTaken: { code: 202, status: 400, text: 'Username has already been taken.' },
  emailTaken: { code: 203, status: 400, text: 'Email has already been taken.' },
  emailMissing: { code: 204, status: 400, text: 'The email is missing, and must be specified.' },
  emailUnknown: { code: 205, status: 400, text: 'A user with the specified email was not found.' },
  // protocol/errors.md#http-status: a stale session.
  sessionNeeded: {
    code: 206,
    status: 403,
    text: 'The user cannot be altered by a client without the session.',
  },
  accountLinked: { code: 208, status: 400, text: 'An existing account already linked to another user.' },
  passwordMismatch: { code: 210, status: 400, text: 'The username and password mismatch.' },
  userNotFound: { code: 211, status: 400, text: 'Could not find user.' },
  phoneMissing: {
    code: 212,
    status: 400,
    text: 'The mobile phone number is missing, and must be specified.',
  },
  phoneUnknown: {
    code: 213,
    status: 400,
    text: 'A user with the specified mobile phone number was not found.',
  },
  phoneTaken: { code: 214, status: 400, text: 'Mobile phone number has already been taken.' },
  phoneUnverified: { code: 215, status: 400, text: "Mobile phone number isn't verified." },
  emailUnverified: { code: 216, status: 400, text: "Email address isn't verified." },
  invalidUsername: { code: 217, status: 400, text: 'Invalid username, it must be a non-blank string.' },
  invalidPassword: { code: 218, status: 400, text: 'Invalid password, it must be a non-blank string.' },
  accountLocked: {
    code: 219,
    status: 400,
    text: 'You have exceeded the maximum number of login attempts, please try again later, or consider resetting your password.',
  },
  linkedIdMissing: { code: 250, status: 400, text: 'Linked id missing from request.' },
  invalidLinkedSession: { code: 251, status: 400, text: 'Invalid linked session: invalid authData.' },
  invalidWeixinSession: { code: 252, status: 400, text: 'Invalid Weixin session: invalid authData.' },
  cqlSyntax: { code: 300, status: 400, text: 'CQL syntax error.' },
  noEffect: { code: 305, status: 400, text: 'No effect on updating/deleting a document.' },
  unauthorized: { code: 401, status: 401, text: 'Unauthorized.' },
  forbidden: { code: 403, status: 403, text: 'Forbidden.' },
  forbiddenFind: { code: 403, status: 403, text: 'Forbidden to find by class permissions.' },
  forbiddenCreate: { code: 403, status: 403, text: 'Forbidden to create by class permissions.' },
  forbiddenDelete: { code: 403, status: 403, text: 'Forbidden to delete by class permissions.' },
  forbiddenReadByAcl: { code: 403, status: 403, text: "Forbidden reading by object's ACL." },
  forbiddenWriteByAcl: { code: 403, status: 403, text: "Forbidden writing by object's ACL." },
  // A login that the `onLogin` hook refuses (protocol/functions.md#hooks: 401).
  loginRefused: { code: 401, status: 401, text: 'Unauthorized.' },
  notFound: { code: 404, status: 404, text: 'Not found.' },
  methodNotAllowed: { code: 405, status: 405, text: 'Method not allowed.' },
  requestTimeout: { code: 408, status: 408, text: 'The request did not arrive in time.' },
  conflict: { code: 409, status: 409, text: 'Conflict.' },
  payloadTooLarge: { code: 413, status: 413, text: 'Payload Too Large.' },
  unsupportedMediaType: { code: 415, status: 415, text: 'Unsupported content type.' },
  // Before any route is known: the URL, or the headers without it.
  headersTooLarge: { code: 431, status: 431, text: 'Request Header Fields Too Large.' },
  // A hook of an app that calls itself (protocol/functions.md#ignored-hooks).
  tooManyHooks: { code: 431, status: 400, text: 'LeanEngine hooks rate limit exceeded.' },
  tooManyRequests: { code: 429, status: 429, text: 'Too many requests.' },
  badGateway: { code: 502, status: 502, text: 'The function host gave no valid answer.' },
  unavailable: { code: 503, status: 503, text: 'Temporarily Unavailable.' },
  // For the operator: a wrong CARILLON_SECRET, or missing tables; the log has the details.
  misconfigured: {
    code: 503,
    status: 503,
    text: 'The service is not set up correctly: its operator finds the reason in its log.',
  },
  upstreamTimeout: { code: 524, status: 524, text: 'The function host could not be reached in time.' },
  invalidSmsSignature: { code: 600, status: 400, text: 'Invalid SMS signature.' },
  smsTooFrequent: { code: 601, status: 400, text: "Can't send SMS too frequently." },
  invalidSmsCode: { code: 603, status: 400, text: 'Invalid SMS code.' },
  smsTemplateNotFound: { code: 604, status: 400, text: 'SMS template not found.' },
  smsTemplateNotVerified: { code: 605, status: 400, text: 'SMS template not verified.' },
  smsTemplateFailed: { code: 606, status: 400, text: 'The SMS template could not be filled in.' },
  // The texts of these that clients know (protocol/errors.md#texts-of-code-1).
  smsTooSoon: { code: 1, status: 400, text: 'SMS request too fast(1 request per 10s).' },
  emailVerificationOff: {
    code: 1,
    status: 400,
    text: 'Please enable the option to verify user emails in application settings.',
  },
  tooManyMails: { code: 1, status: 400, text: 'Please do not send too many emails to the same address.' },
  wrongCaptcha: { code: 1, status: 400, text: 'The captcha code is wrong or has expired.' },
  validateTokenMissing: { code: 608, status: 400, text: 'Missing validate token.' },
} as const;

export type ErrorName = keyof typeof table;

/** Every refusal by name, for the reference (docs/reference/errors.md). */
export const errorTable: Readonly<Record<ErrorName, { code: number; status: number; text: string }>> = table;

export interface RefusalOptions {
  /** Public text in place of the table's; must not quote secrets, tokens or SQL. */
  text?: string;
  /** Seconds for the `Retry-After` header. */
  retryAfterSeconds?: number;
  /** Cause, for the log only. */
  cause?: unknown;
}

/** Error that becomes an error reply (`api/middleware/errors.ts`). */
export class Refusal extends Error {
  readonly kind: ErrorName;
  readonly code: number;
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;
  /** True if the text is not the table's and has no translation. */
  readonly hasOwnText: boolean;

  constructor(kind: ErrorName, options: RefusalOptions = {}) {
    super(options.text ?? table[kind].text, { cause: options.cause });
    this.name = 'Refusal';
    this.kind = kind;
    this.code = table[kind].code;
    this.status = table[kind].status;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.hasOwnText = options.text !== undefined;
  }
}

/** Returns a `Refusal` with an optional text. */
export function refuse(kind: ErrorName, text?: string): Refusal {
  return new Refusal(kind, text === undefined ? {} : { text });
}
