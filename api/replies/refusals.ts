import type { ErrorName } from '../../shared/domain/errors/errors.ts';

/** Refusals that several routes have in common: one list for each kind of work behind a route. */

const names = <const N extends readonly ErrorName[]>(...list: N): N => list;

/** Conditions, `keys` and `include` of a query. */
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

/** Members of an object that is written. */
const ofMembers = names(
  // A flag of the query, such as `fetchWhenSave`.
  'invalidQuery',
  'invalidKeyName',
  'forbiddenName',
  'incorrectType',
  'malformedPointer',
  'tooLarge',
  'readOnlyKey',
  'invalidAcl',
);

/** Updates and deletions, with a condition in `where`. */
export const ofCondition = names(...ofQuery, 'noEffect');

/** Members of an installation. */
export const ofInstallation = names(
  ...ofMembers,
  'invalidDeviceToken',
  'invalidChannel',
  'duplicate',
);

/** Members of a user. */
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

/** Hooks of the app that run before a user is written. */
export const ofHooks = names(
  'hookRefused',
  'hookTimedOut',
  'tooManyHooks',
  'badGateway',
  'unavailable',
  'tooManyRequests',
);

/** Logins, with the hook that runs after them. */
export const ofLogin = names(
  'userNotFound',
  'passwordMismatch',
  'accountLocked',
  'emailUnverified',
  'phoneUnverified',
  'loginRefused',
  ...ofHooks,
);

/** Messages that carry a code. */
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

/** Codes that are checked. */
export const ofCode = names('invalidSmsCode', 'invalidPhone', 'phoneMissing');

/** Content and time of a push. */
export const ofPush = names(
  'incorrectType',
  'invalidChannel',
  'invalidPushTime',
  'thresholdExceeded',
  'cqlSyntax',
  ...ofQuery,
);

/** Name, ACL and members of a role. */
export const ofRole = names(
  ...ofMembers,
  'invalidRoleName',
  'duplicate',
  'invalidRelation',
  'invalidParameter',
  'conflict',
);

/** Function hosts that are away, slow, or answer with something else than JSON. */
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

/** Batches of saves: one in which every save fails is refused like its first. */
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
