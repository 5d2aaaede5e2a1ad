import { namesOfToken } from '../../domain/installations/identity.ts';
import { canonicalVendor, namesOfDeviceType } from '../../domain/labels.ts';
import { parsePhone } from '../../domain/messages/phone.ts';
import type { ClassSchema, Column } from './fields.ts';

/** Token as the client sent it. */
const sentToken = 'coalesce(device_token_sent, device_token)';
const topic: Column = { type: 'text', sql: 'topic' };
const teamId: Column = { type: 'text', sql: 'team_id' };

/** Columns of every class table. */
const commonColumns: readonly (readonly [string, Column])[] = [
  ['objectId', { type: 'text', sql: 'object_id' }],
  ['createdAt', { type: 'time', sql: 'created_at' }],
  ['updatedAt', { type: 'time', sql: 'updated_at' }],
];

/** `_Installation`: columns of the table `installation` (develop/architecture.md#data), neutral and wire names alike. */
export const installationClass: ClassSchema = {
  name: '_Installation',
  table: 'installation',
  // A member of its own; an invalid one, from before ACLs counted, does not count.
  acl: `(CASE WHEN jsonb_typeof(fields -> 'ACL') = 'object' THEN fields -> 'ACL' END)`,
  jsonColumn: 'fields',
  columns: new Map<string, Column>([
    ...commonColumns,
    ['deviceType', { type: 'text', sql: 'device_type', namesOf: namesOfDeviceType }],
    ['deviceToken', { type: 'text', sql: 'device_token', spelling: sentToken, namesOf: namesOfToken }],
    ['installationId', { type: 'text', sql: 'installation_id' }],
    ['registrationId', { type: 'text', sql: 'registration_id' }],
    ['vendor', { type: 'text', sql: 'vendor', spelling: 'vendor_name', canonical: canonicalVendor }],
    ['deviceProfile', { type: 'text', sql: 'device_profile', isEqualityOnly: true }],
    ['timeZone', { type: 'text', sql: 'time_zone' }],
    ['pgwTopic', topic],
    ['apnsTopic', topic],
    ['pgwTeamId', teamId],
    ['apnsTeamId', teamId],
    ['channels', { type: 'textArray', sql: 'channels' }],
    ['valid', { type: 'boolean', sql: 'valid' }],
    ['badge', { type: 'integer', sql: 'badge' }],
  ]),
  hidden: new Set(['ACL']),
};

/** `_User`: columns of the table `app_user`. Hidden members cannot be filtered, sorted or projected by name. */
export const userClass: ClassSchema = {
  name: '_User',
  table: 'app_user',
  acl: 'acl',
  jsonColumn: 'fields',
  columns: new Map<string, Column>([
    ...commonColumns,
    ['username', { type: 'text', sql: 'username' }],
    ['email', { type: 'text', sql: 'email' }],
    ['emailVerified', { type: 'boolean', sql: 'email_verified' }],
    [
      'mobilePhoneNumber',
      {
        type: 'text',
        sql: 'mobile_phone_number',
        canonical: (text) => parsePhone(text)?.e164 ?? text,
      },
    ],
    ['mobilePhoneVerified', { type: 'boolean', sql: 'mobile_phone_verified' }],
  ]),
  hidden: new Set(['password', 'sessionToken', 'authData', 'ACL', 'salt', 'mobilePhone']),
};

/** `_Role`: columns of the table `role`, and its relations. */
export const roleClass: ClassSchema = {
  name: '_Role',
  table: 'role',
  acl: 'acl',
  jsonColumn: 'fields',
  columns: new Map<string, Column>([
    ...commonColumns,
    ['name', { type: 'text', sql: 'name' }],
    ['users', { type: 'relation', className: '_User', table: 'role_user', member: 'user_id' }],
    ['roles', { type: 'relation', className: '_Role', table: 'role_role', member: 'child_id' }],
  ]),
  hidden: new Set(['ACL']),
};

/**
 * Records of pushes, for `where` of their list only: not among the classes, so no subquery names it. `status` is what clients
 * see (domain/pushes/record.ts). A member without a column is in no record.
 */
export const pushRecordClass: ClassSchema = {
  name: '_Notification',
  table: 'notification',
  acl: undefined,
  jsonColumn: "('{}'::jsonb)",
  columns: new Map<string, Column>([
    ...commonColumns,
    ['notificationId', { type: 'text', sql: 'notification_id' }],
    ['prod', { type: 'text', sql: "(request ->> 'prod')" }],
    ['devices', { type: 'integer', sql: 'devices' }],
    [
      'status',
      {
        type: 'text',
        sql: "(CASE state WHEN 'failed' THEN coalesce(error, 'error') WHEN 'done' THEN state WHEN 'scheduled' THEN state ELSE 'in-queue' END)",
      },
    ],
  ]),
};

/** All classes, by name. */
export const classes: ReadonlyMap<string, ClassSchema> = new Map(
  [installationClass, userClass, roleClass].map((cls) => [cls.name, cls]),
);
