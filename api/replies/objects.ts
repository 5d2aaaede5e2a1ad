import { z } from 'zod';
import { acl, component, count, errorReply, listOf, stored, updated } from './common.ts';

const ofAccount = {
  username: z.string().describe('Unique name of the user.'),
  email: z.string().optional().describe('Address of the user.'),
  emailVerified: z.boolean().nullable().describe('Null if no mail was ever sent.'),
  mobilePhoneNumber: z.string().optional().describe('E.164.'),
  mobilePhoneVerified: z.boolean().describe('Whether a code proved the number.'),
  authData: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Third-party accounts by platform. Returned only to the user and to the master key.'),
  ACL: acl.optional().describe('With `returnACL=true`.'),
};

/** User. If the call has `keys`, contains only the members that it names. */
export const userPart = component(
  'UserPart',
  z
    .looseObject({ ...ofAccount, ...stored })
    .partial()
    .describe('User with the app’s custom members. With `keys`, only the members that it names.'),
);

const sessionToken = z.string().describe('Sent as `X-LC-Session`.');

export const signedInUser = component(
  'SignedInUser',
  z
    .looseObject({ ...ofAccount, ...stored, sessionToken })
    .describe('User with its session token and the app’s custom members.'),
);

export const updatedUser = component(
  'UpdatedUser',
  z
    .looseObject(ofAccount)
    .partial()
    .extend({ ...updated, sessionToken: sessionToken.optional() })
    .describe('`sessionToken` is present if a new password ended the session.'),
);

/** Reply to a new password. */
export const renewedSession = component(
  'RenewedSession',
  z.strictObject({ ...updated, sessionToken }),
);

/** Reply to the verification of a phone number. */
export const verifiedUser = component('VerifiedUser', z.strictObject(updated));

const relation = (className: '_User' | '_Role') =>
  z
    .strictObject({
      __type: z.literal('Relation').describe('Type of the value.'),
      className: z.literal(className).optional().describe('Class of the members.'),
    })
    .describe('Relation. `$relatedTo` in a condition lists its members.');

const ofRole = {
  name: z.string().describe('Unique name of the role.'),
  users: relation('_User'),
  roles: relation('_Role'),
  ACL: acl.optional().describe('With `returnACL=true`.'),
};

export const role = component(
  'Role',
  z.looseObject({ ...ofRole, ...stored }).describe('Role with the app’s custom members.'),
);

export const rolePart = component(
  'RolePart',
  z
    .looseObject({ ...ofRole, ...stored })
    .partial()
    .describe('Role. With `keys`, only the members that it names.'),
);

/** Reply to a new role without `fetchWhenSave=true`. */
export const createdRole = component(
  'CreatedRole',
  z.strictObject({ objectId: stored.objectId, createdAt: stored.createdAt }),
);

export const updatedRole = component(
  'UpdatedRole',
  z.looseObject(ofRole).partial().extend(updated),
);

/**
 * Returns the schema of the members of a relation, for callers that do not know their class
 * (`redirectClassNameForKey`).
 */
const members = <C extends string, S extends z.ZodType>(className: C, item: S) =>
  listOf(item).extend({ className: z.literal(className).describe('Class of the objects.') });

export const roleList = component(
  'RoleList',
  z
    .union([listOf(rolePart), members('_User', userPart), members('_Role', rolePart)])
    .describe('Roles. With `redirectClassNameForKey`, the members of a relation and their class.'),
);

const ofDevice = {
  deviceType: z.string().describe('Type of the device, such as `ios` or `android`.'),
  deviceToken: z.string().optional().describe('Token of APNs.'),
  installationId: z.string().optional().describe('Id that the client made.'),
  vendor: z.string().optional().describe('Name as it was stored: a wire name or a neutral name.'),
  registrationId: z.string().optional().describe('Id that the service of the vendor assigned.'),
  subscription: z
    .object({
      endpoint: z.string().describe('Address of the push service of the browser.'),
      keys: z
        .object({
          p256dh: z.string().describe('Public key of the browser, base64url.'),
          auth: z.string().describe('Authentication secret of the browser, base64url.'),
        })
        .describe('Keys with which messages are encrypted.'),
      keyId: z.string().optional().describe('Id of the VAPID key of the subscription.'),
    })
    .optional()
    .describe('Web Push subscription. Only the master key reads it.'),
  deviceProfile: z
    .string()
    .optional()
    .describe('Name of the push profile. Absent means `_default`.'),
  apnsTopic: z.string().optional().describe('Named `pgwTopic` if it was stored under that name.'),
  pgwTopic: z.string().optional().describe('Topic of APNs (bundle id).'),
  apnsTeamId: z.string().optional().describe('Named `pgwTeamId` if it was stored under that name.'),
  pgwTeamId: z.string().optional().describe('Team of APNs.'),
  channels: z.array(z.string()).optional().describe('Subscribed channels.'),
  valid: z.boolean().describe('`false`: no pushes are sent to the installation.'),
  timeZone: z.string().optional().describe('Time zone of the device.'),
  badge: z.number().optional().describe('Number that `badge: "Increment"` of a push counts up.'),
};

export const webPushKey = component(
  'WebPushKey',
  z.object({
    publicKey: z
      .string()
      .describe('VAPID key in base64url: `applicationServerKey` of `pushManager.subscribe`.'),
    keyId: z.string().describe('Id of the key, for `subscription.keyId` of an installation.'),
  }),
);

export const installation = component(
  'Installation',
  z
    .looseObject({ ...ofDevice, ...stored })
    .describe('Installation of an app on a device, with the app’s custom members.'),
);

export const installationPart = component(
  'InstallationPart',
  z
    .looseObject({ ...ofDevice, ...stored })
    .partial()
    .describe(
      'Installation. With `keys`, only the members that it names. Empty for an unknown id.',
    ),
);

/** Reply to a registration without `fetchWhenSave=true`. */
export const savedInstallation = component(
  'SavedInstallation',
  z.strictObject({ ...stored, updatedAt: stored.updatedAt.optional() }),
);

export const updatedInstallation = component(
  'UpdatedInstallation',
  z.looseObject(ofDevice).partial().extend(updated),
);

const found = <C extends string, S extends z.ZodType>(className: C, item: S) =>
  z.strictObject({
    className: z.literal(className).describe('Class of the objects.'),
    results: z.array(item).describe('Objects that match.'),
    count: count.optional().describe('Number of all matches, with `count(*)`.'),
  });

/** Reply to a CQL statement. */
export const cqlResult = component(
  'CqlResult',
  z.discriminatedUnion('className', [
    found('_Installation', installationPart),
    found('_User', userPart),
    found('_Role', rolePart),
  ]),
);

/** Object of any class that can be scanned. */
export const scannedObject = z.union([installationPart, userPart, rolePart]);

const refusedCall = z.strictObject({ error: errorReply });

export const batchReply = component(
  'BatchReply',
  z
    .array(
      z.union([
        z.strictObject({ success: z.unknown().describe('Reply of the call.') }),
        refusedCall,
      ]),
    )
    .describe('Replies in the order of the calls.'),
);

export const batchSaveReply = component(
  'BatchSaveReply',
  z
    .record(z.string(), z.union([refusedCall, z.record(z.string(), z.unknown())]))
    .describe('Replies by `__internalId`, object id or index in the batch.'),
);

/** Unchanged reply of a function host. */
export const functionResult = component(
  'FunctionResult',
  z.unknown().describe('JSON of the function host.'),
);
