import { z } from 'zod';
import { lastBadge, textForms } from '../../shared/domain/installations/members.ts';
import { deviceTypes } from '../../shared/domain/labels.ts';
import { aclSubject, roleName } from '../../shared/domain/objects/acl.ts';
import { isDeletion } from '../../shared/domain/objects/operations.ts';
import { usernameForm } from '../../shared/domain/users/user.ts';
import { address, code, phone } from './accounts.ts';
import { describedBy, openBody, parsedByService, refusedAs } from './checked.ts';

/**
 * Returns the schema of an operation on a stored value (protocol/objects.md#operations). Services
 * check the results of operations, and rules that concern several members.
 */
const operation = <const Names extends readonly [string, ...string[]]>(...names: Names) =>
  z.looseObject({ __op: z.enum(names).describe('Operation on the stored value.') });
const deletion = operation('Delete');
const counterOperation = operation('Increment', 'Decrement', 'Delete', 'Batch');
const listOperation = operation('Add', 'AddUnique', 'Remove', 'Delete', 'Batch').extend({
  objects: z.array(z.unknown()).optional().describe('Entries to add or remove.'),
});

/** Returns the schema of a member that null and `Delete` remove. Both become null. */
const orRemoval = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (isDeletion(value) ? null : value), schema.nullish());

const acl = refusedAs(
  orRemoval(
    z.record(
      z.string().regex(aclSubject),
      z.strictObject({
        read: z.boolean().optional().describe('May read the object.'),
        write: z.boolean().optional().describe('May change and delete the object.'),
      }),
    ),
  ),
  { invalid: 'invalidAcl' },
).describe('Permissions by user id, `role:<name>`, or `*` for every caller.');

const text = z.string().max(255);

const formed = (form: keyof typeof textForms) => z.string().regex(textForms[form]).nullish();

const tokenText = 'Token of APNs. Required for `ios`.';
const installationIdText = 'Id that the client made. Required for `android`. Never changes.';
const typeText = 'Type of the device. Required for a new installation. Never changes.';

/**
 * Members of an installation. The service checks them (`shared/domain/installations/members.ts`),
 * because it also checks the results of operations. Null, an empty text and `Delete` remove a
 * member.
 */
const device = {
  deviceType: z
    .enum([...deviceTypes])
    .nullish()
    .describe(typeText),
  deviceToken: formed('shortId').describe(tokenText),
  installationId: formed('shortId').describe(installationIdText),
  registrationId: formed('longId').describe('Id that the service of the vendor assigned.'),
  subscription: z
    .union([
      z.object({
        endpoint: z.string().max(1000).describe('Address of the push service of the browser.'),
        keys: z
          .object({
            p256dh: z.string().max(120).describe('Public key of the browser, base64url.'),
            auth: z.string().max(120).describe('Authentication secret of the browser, base64url.'),
          })
          .describe('Keys with which messages are encrypted.'),
        expirationTime: z.number().nullish().describe('Sent by browsers. Not stored.'),
        keyId: z.string().max(16).optional().describe('Id of the VAPID key of the subscription.'),
      }),
      z.string().max(4096),
    ])
    .nullish()
    .describe(
      'Web Push subscription of a browser: the JSON of its `PushSubscription`. In addition `keyId` of the VAPID key that it was made with; by default, the current key.',
    ),
  vendor: formed('vendor').describe('Vendor of `registrationId`: a wire name or a neutral name.'),
  deviceProfile: formed('profileName').describe('Name of the push profile. `_default` by default.'),
  apnsTopic: formed('plain').describe('Topic of APNs (bundle id).'),
  pgwTopic: formed('plain').describe('Same as `apnsTopic`.'),
  apnsTeamId: formed('plain').describe('Team of APNs.'),
  pgwTeamId: formed('plain').describe('Same as `apnsTeamId`.'),
  channels: z
    .union([z.array(text), listOperation])
    .nullish()
    .describe('Subscribed channels, or an operation that adds or removes some.'),
  valid: z.boolean().nullish().describe('`false`: no pushes are sent to the installation.'),
  timeZone: formed('plain').describe('Time zone of the device.'),
  badge: z
    .union([z.int().min(-lastBadge).max(lastBadge), counterOperation])
    .nullish()
    .describe('Number that `badge: "Increment"` of a push counts up.'),
};

/**
 * Body with changes of an installation (protocol/installations.md#registration). Other members are
 * custom.
 */
export const installationChanges = parsedByService(z.looseObject(device));

/** Body that registers an installation. */
export const registrationBody = parsedByService(
  z.looseObject({
    ...device,
    objectId: z.string().optional().describe('Id of an installation that exists.'),
  }),
);

const accounts = z.record(
  z.string(),
  refusedAs(z.looseObject({}).nullable(), { invalid: 'linkedIdMissing' }),
);
/** `Delete` removes all accounts. Null removes none. */
const authData = describedBy(z.union([accounts, deletion]).nullish(), accounts.nullish()).describe(
  'Third-party accounts by platform. Null unlinks an account.',
);

const user = {
  username: refusedAs(z.string().regex(usernameForm), {
    empty: 'usernameMissing',
    invalid: 'invalidUsername',
  })
    .optional()
    .describe('Unique name. Required with `password` at sign-up.'),
  password: refusedAs(z.string().max(1024), { invalid: 'invalidPassword' })
    .optional()
    .describe('Password of the account.'),
  email: refusedAs(orRemoval(address), { invalid: 'invalidEmail' }).describe('Unique address.'),
  mobilePhoneNumber: refusedAs(orRemoval(z.string()), { invalid: 'invalidPhone' }).describe(
    'Number with a country code. Without a country code, it belongs to +86.',
  ),
  authData,
  ACL: acl,
};

/**
 * Members of a new user, or changes of a user (protocol/users.md#calls-for-users). Other members
 * are custom.
 */
export const userMembers = openBody(user);

/** Body of a deletion, with hints. */
export const deletionBody = openBody({
  __ignore_hooks: z
    .unknown()
    .optional()
    .describe('Hooks to skip. See protocol/functions.md#ignored-hooks.'),
});

/** Body of a sign-up or login by a code (protocol/codes.md#phone-accounts). */
export const phoneLoginBody = openBody({
  ...user,
  mobilePhoneNumber: phone.describe('Number that the code was sent to.'),
  smsCode: code.describe('Code of the general code service.'),
});

const relation = z
  .union([
    operation('AddRelation', 'RemoveRelation', 'Batch'),
    z.looseObject({ __type: z.literal('Relation').describe('Type of the value.') }),
  ])
  .optional()
  .describe('`objects`: at most 1,000 pointers. `Batch` contains up to ten operations in `ops`.');

const role = { users: relation, roles: relation, ACL: acl };

/** Body of a new role (protocol/roles.md#role-fields). Other members are custom. */
export const roleBody = openBody({
  name: refusedAs(z.string().regex(roleName), {
    missing: 'invalidRoleName',
    invalid: 'invalidRoleName',
  }).describe('Unique name. Never changes.'),
  ...role,
});

/** Body with changes of a role. */
export const roleChanges = openBody(role);
