import { z } from 'zod';
import { deviceTypes } from '../../../shared/domain/labels.ts';

/** Bodies with users, installations and roles, for the document only: the services check them. */

/** Changes of a stored value (protocol/objects.md#operations). */
const operation = <const Names extends readonly [string, ...string[]]>(...names: Names) =>
  z.looseObject({ __op: z.enum(names) });
const deletion = operation('Delete');
const counterOperation = operation('Increment', 'Decrement', 'Delete', 'Batch');
const listOperation = operation('Add', 'AddUnique', 'Remove', 'Delete', 'Batch');

const orDeletion = <S extends z.ZodType>(schema: S) => z.union([schema, deletion]).nullish();

const acl = z
  .record(z.string(), z.object({ read: z.literal(true).optional(), write: z.literal(true).optional() }))
  .optional()
  .describe('Permissions by user id, `role:<name>`, or `*` for every caller.');

const text = z.string().max(255);

const device = {
  deviceToken: z.string().max(200).optional().describe('Token of APNs; required for `ios`.'),
  installationId: z
    .string()
    .max(200)
    .optional()
    .describe('Id that the client made; required for `android`. Never changes.'),
  registrationId: orDeletion(z.string().max(512)).describe('Id that the service of the vendor assigned.'),
  vendor: orDeletion(z.string().max(64)).describe(
    'Vendor of `registrationId`: a wire name or a neutral one.',
  ),
  deviceProfile: orDeletion(z.string().max(64)).describe('Name of the push profile; `_default` by default.'),
  apnsTopic: orDeletion(text).describe('Topic of APNs (bundle id).'),
  pgwTopic: orDeletion(text).describe('Same as `apnsTopic`.'),
  apnsTeamId: orDeletion(text).describe('Team of APNs.'),
  pgwTeamId: orDeletion(text).describe('Same as `apnsTeamId`.'),
  channels: z
    .union([z.array(text), listOperation])
    .nullish()
    .describe('Subscribed channels, or an operation that adds or removes some.'),
  valid: z.boolean().optional().describe('`false`: no pushes are sent to the installation.'),
  timeZone: orDeletion(text).describe('Time zone of the device.'),
  badge: z
    .union([z.int(), counterOperation])
    .nullish()
    .describe('Number that `badge: "Increment"` of a push counts up.'),
};

const deviceType = z.enum([...deviceTypes]).describe('Type of the device; never changes.');

/** Registration of an installation (protocol/installations.md#registration); other members are custom. */
export const registrationBody = z.looseObject({
  deviceType,
  ...device,
  objectId: z.string().optional().describe('Id of an installation that exists.'),
});

/** Changes of an installation. */
export const installationChanges = z.looseObject({ deviceType: deviceType.optional(), ...device });

const authData = z
  .record(z.string(), z.looseObject({}).nullable())
  .optional()
  .describe('Third-party accounts by platform; null unlinks one.');

const user = {
  username: z.string().optional().describe('Unique name; required with `password` at sign-up.'),
  password: z.string().max(1024).optional(),
  email: orDeletion(z.string()).describe('Unique address.'),
  mobilePhoneNumber: orDeletion(z.string()).describe(
    'Number with a country code; one without it belongs to +86.',
  ),
  authData,
  ACL: acl,
};

/** Members of a new user, or changes of a user (protocol/users.md#calls-for-users); other members are custom. */
export const userMembers = z.looseObject(user);

/** Hints for a deletion. */
export const deletionBody = z.looseObject({
  __ignore_hooks: z
    .unknown()
    .optional()
    .describe('Hooks to leave out; see protocol/functions.md#ignored-hooks.'),
});

/** Sign-up or login by a code (protocol/codes.md#phone-accounts). */
export const phoneLoginBody = userMembers.extend({
  mobilePhoneNumber: z.string().describe('Number that the code was sent to.'),
  smsCode: z.string().describe('Code of the general code service.'),
});

const relation = operation('AddRelation', 'RemoveRelation', 'Batch')
  .optional()
  .describe('`objects`: at most 1,000 pointers; `Batch` has up to ten operations in `ops`.');

const role = { users: relation, roles: relation, ACL: acl };

/** New role (protocol/roles.md#role-fields); other members are custom. */
export const roleBody = z.looseObject({
  name: z.string().max(128).describe('Unique name; never changes.'),
  ...role,
});

/** Changes of a role. */
export const roleChanges = z.looseObject(role);
