import { z } from 'zod';
import { lastBadge, textForms, textRules } from '../../shared/domain/installations/members.ts';
import { deviceTypes } from '../../shared/domain/labels.ts';
import { roleName } from '../../shared/domain/objects/acl.ts';
import { usernameForm } from '../../shared/domain/users/members.ts';
import { address, code, phone } from './accounts.ts';
import { openBody, refusedAs } from './checked.ts';

/**
 * Bodies with users, installations and roles. The services check what concerns several members, and
 * the results of operations.
 */

/** Changes of a stored value (protocol/objects.md#operations). */
const operation = <const Names extends readonly [string, ...string[]]>(...names: Names) =>
  z.looseObject({ __op: z.enum(names) });
const deletion = operation('Delete');
const counterOperation = operation('Increment', 'Decrement', 'Delete', 'Batch');
const listOperation = operation('Add', 'AddUnique', 'Remove', 'Delete', 'Batch').extend({
  objects: z.array(z.unknown()).optional(),
});

const orDeletion = <S extends z.ZodType>(schema: S) => z.union([schema, deletion]).nullish();

const acl = refusedAs(
  z.union([
    z.record(z.string(), z.strictObject({ read: z.boolean().optional(), write: z.boolean().optional() })),
    deletion,
  ]),
  { invalid: 'invalidAcl' },
)
  .nullish()
  .describe('Permissions by user id, `role:<name>`, or `*` for every caller.');

const text = z.string().max(255);

/** A member of a device: null and an empty text remove it. */
const removable = <S extends z.ZodType>(schema: S, rule: string) =>
  z.preprocess((value) => (value === '' ? null : value), z.union([schema, deletion], rule).nullish());
/** A member that names the device: an empty text counts as absent, and it is never removed. */
const lasting = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (value === '' ? null : value), schema.nullish());
const id = z.string().regex(textForms.shortId, `must be ${textRules.shortId}`);

function removableText(form: keyof typeof textForms) {
  const rule = `must be ${textRules[form]}`;
  return removable(z.string().regex(textForms[form], rule), rule);
}

const badgeRule = `must be a whole number from -${lastBadge} to ${lastBadge}`;

const tokenText = 'Token of APNs; required for `ios`.';
const installationIdText = 'Id that the client made; required for `android`. Never changes.';
const typeText = 'Type of the device; required for a new installation, and never changes.';
const deviceType = z.enum([...deviceTypes], `must be one of ${deviceTypes.join(', ')}`);
const ofToken = { invalid: 'invalidDeviceToken', isNamed: true } as const;

/** Members that name a device, at its registration. */
const identity = {
  deviceType: lasting(deviceType).describe(typeText),
  deviceToken: refusedAs(lasting(id), ofToken).describe(tokenText),
  installationId: lasting(id).describe(installationIdText),
};

/** The same in a change, which is refused with a code of its own where it removes one. */
const changedIdentity = {
  deviceType: removable(deviceType, `must be one of ${deviceTypes.join(', ')}`).describe(typeText),
  deviceToken: refusedAs(removableText('shortId'), ofToken).describe(tokenText),
  installationId: removableText('shortId').describe(installationIdText),
};

const device = {
  registrationId: removableText('longId').describe('Id that the service of the vendor assigned.'),
  vendor: removableText('vendor').describe('Vendor of `registrationId`: a wire name or a neutral one.'),
  deviceProfile: removableText('profileName').describe('Name of the push profile; `_default` by default.'),
  apnsTopic: removableText('plain').describe('Topic of APNs (bundle id).'),
  pgwTopic: removableText('plain').describe('Same as `apnsTopic`.'),
  apnsTeamId: removableText('plain').describe('Team of APNs.'),
  pgwTeamId: removableText('plain').describe('Same as `apnsTeamId`.'),
  channels: refusedAs(removable(z.union([z.array(text), listOperation]), 'must be a list of texts'), {
    invalid: 'invalidChannel',
    isNamed: true,
  }).describe('Subscribed channels, or an operation that adds or removes some.'),
  valid: lasting(z.boolean('must be true or false')).describe(
    '`false`: no pushes are sent to the installation.',
  ),
  timeZone: removableText('plain').describe('Time zone of the device.'),
  badge: removable(
    z.union([z.int(badgeRule).min(-lastBadge, badgeRule).max(lastBadge, badgeRule), counterOperation]),
    badgeRule,
  ).describe('Number that `badge: "Increment"` of a push counts up.'),
};

/** Changes of an installation (protocol/installations.md#registration); other members are custom. */
export const installationChanges = openBody({ ...changedIdentity, ...device });

/** Registration of an installation. */
export const registrationBody = openBody({
  ...identity,
  ...device,
  objectId: z.string().optional().describe('Id of an installation that exists.'),
});

const authData = z
  .union([
    z.record(z.string(), refusedAs(z.looseObject({}).nullable(), { invalid: 'linkedIdMissing' })),
    deletion,
  ])
  .nullish()
  .describe('Third-party accounts by platform; null unlinks one.');

const user = {
  username: refusedAs(z.string().regex(usernameForm), {
    empty: 'usernameMissing',
    invalid: 'invalidUsername',
  })
    .optional()
    .describe('Unique name; required with `password` at sign-up.'),
  password: refusedAs(z.string().max(1024), { invalid: 'invalidPassword' }).optional(),
  email: refusedAs(orDeletion(address), { invalid: 'invalidEmail' }).describe('Unique address.'),
  mobilePhoneNumber: refusedAs(orDeletion(z.string()), { invalid: 'invalidPhone' }).describe(
    'Number with a country code; one without it belongs to +86.',
  ),
  authData,
  ACL: acl,
};

/** Members of a new user, or changes of a user (protocol/users.md#calls-for-users); other members are custom. */
export const userMembers = openBody(user);

/** Hints for a deletion. */
export const deletionBody = openBody({
  __ignore_hooks: z
    .unknown()
    .optional()
    .describe('Hooks to leave out; see protocol/functions.md#ignored-hooks.'),
});

/** Sign-up or login by a code (protocol/codes.md#phone-accounts). */
export const phoneLoginBody = openBody({
  ...user,
  mobilePhoneNumber: phone.describe('Number that the code was sent to.'),
  smsCode: code.describe('Code of the general code service.'),
});

const relation = z
  .union([
    operation('AddRelation', 'RemoveRelation', 'Batch'),
    z.looseObject({ __type: z.literal('Relation') }),
  ])
  .optional()
  .describe('`objects`: at most 1,000 pointers; `Batch` has up to ten operations in `ops`.');

const role = { users: relation, roles: relation, ACL: acl };

/** New role (protocol/roles.md#role-fields); other members are custom. */
export const roleBody = openBody({
  name: refusedAs(z.string().regex(roleName), {
    missing: 'invalidRoleName',
    invalid: 'invalidRoleName',
  }).describe('Unique name; never changes.'),
  ...role,
});

/** Changes of a role. */
export const roleChanges = openBody(role);
