import type { ErrorName } from '../../shared/domain/errors/errors.ts';

/**
 * Returns a list of refusals that several routes share. There is one list for each kind of work
 * behind a route.
 */
const names = <const N extends readonly ErrorName[]>(...list: N): N => list;

/** Refusals of conditions, `keys` and `include` of a query. */
export const ofQuery = names(
  'invalidQuery',
  'invalidKeyName',
  'forbiddenName',
  'malformedPointer',
  'malformedJson',
  'incorrectType',
  'objectNotFound',
  'forbiddenFind',
  'tooLarge',
  'timedOut',
);

/** Refusals of the members of a written object. */
const ofMembers = names(
  // For a flag of the query, such as `fetchWhenSave`.
  'invalidQuery',
  'invalidKeyName',
  'forbiddenName',
  'incorrectType',
  'malformedPointer',
  'tooLarge',
  'readOnlyKey',
  'invalidAcl',
);

/** Refusals of updates and deletions with a condition in `where`. */
export const ofCondition = names(...ofQuery, 'noEffect');

/** Refusals of the members of an installation. */
export const ofInstallation = names(
  ...ofMembers,
  'invalidDeviceToken',
  'invalidChannel',
  'duplicate',
);

/** Refusals of the members of a user. */
export const ofUser = names(
  ...ofMembers,
  'usernameMissing',
  'invalidUsername',
  'usernameTaken',
  'passwordMissing',
  'invalidPassword',
  'invalidEmail',
  'emailTaken',
  'invalidPhone',
  'phoneTaken',
  'linkedIdMissing',
  'invalidLinkedSession',
  'invalidWeixinSession',
  'accountLinked',
  'conflict',
);

/** Refusals of hooks that run before a user is written. */
export const ofHooks = names(
  'hookRefused',
  'hookTimedOut',
  'tooManyHooks',
  'badGateway',
  'unavailable',
  'tooManyRequests',
);

/** Refusals of logins, including the hook that runs after them. */
export const ofLogin = names(
  'userNotFound',
  'passwordMismatch',
  'accountLocked',
  'emailUnverified',
  'phoneUnverified',
  'loginRefused',
  ...ofHooks,
);

/** Refusals of requests for a code. */
export const ofCodeRequest = names(
  'phoneMissing',
  'invalidPhone',
  'notForClients',
  'validateTokenMissing',
  'smsTooSoon',
  'smsTooFrequent',
  'smsTemplateNotFound',
  'smsTemplateNotVerified',
  'smsTemplateFailed',
  'invalidSmsSignature',
  'insufficientBalance',
  'thresholdExceeded',
  'incorrectType',
);

/** Refusals of submitted codes. */
export const ofCode = names('invalidSmsCode', 'invalidPhone', 'phoneMissing');

/** Refusals of the content and time of a push. */
export const ofPush = names(
  'incorrectType',
  'invalidChannel',
  'invalidPushTime',
  'thresholdExceeded',
  'cqlSyntax',
  ...ofQuery,
);

/** Refusals of calls that reach the management server of APNs. */
export const ofChannels = names(
  'incorrectType',
  'invalidParameter',
  'objectNotFound',
  'thresholdExceeded',
  'tooManyRequests',
  'unavailable',
);

/** Refusals of the name, ACL and members of a role. */
export const ofRole = names(
  ...ofMembers,
  'invalidRoleName',
  'duplicate',
  'invalidRelation',
  'invalidParameter',
  'conflict',
);

/**
 * Refusals for function hosts that are unreachable, slow, or reply with something other than JSON.
 */
export const ofFunctionHost = names(
  'noSuchFunction',
  'unauthorized',
  'badGateway',
  'functionTimedOut',
  'upstreamTimeout',
  'unavailable',
  'tooManyRequests',
  'requestTimeout',
);

/**
 * Refusals of batches of saves. If every save fails, the batch gets the refusal of the first save.
 */
export const ofSave = names(
  ...ofInstallation,
  ...ofUser,
  ...ofRole,
  ...ofLogin,
  ...ofCondition,
  ...ofCodeRequest,
  ...ofCode,
  ...ofPush,
  'notFound',
  'noSuchObject',
  'sessionNeeded',
  'masterKeyRequired',
  'forbiddenCreate',
  'forbiddenWriteByAcl',
);
