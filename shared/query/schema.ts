import { refuse } from '../domain/errors/errors.ts';
import { storedFormsOfToken } from '../domain/installations/identity.ts';
import { canonicalVendor, storedFormsOfDeviceType } from '../domain/labels.ts';
import { parsePhone } from '../domain/messages/phone.ts';
import { isMemberName } from '../domain/objects/typed-values.ts';

export interface TextColumn {
  type: 'text';
  sql: string;
  /**
   * Column or expression with the client's original text, if `sql` contains another form. Sorting
   * and patterns use this text.
   */
  spelling?: string;
  /**
   * SQL condition of the rows in which `sql` is the member's value. In other rows the member has no
   * value, and `spelling` is null. An index on `sql` serves equality.
   */
  shownIf?: string;
  /** Converts a client's value to its stored form. */
  canonical?: (value: string) => string;
  /**
   * Returns the stored values that are equal to a client's value. If absent, only the value itself
   * is equal.
   */
  storedFormsOf?: (value: string) => readonly string[];
  /** Allows `{"name": value}` only (protocol/queries.md#equality-only). */
  isEqualityOnly?: boolean;
}

export interface PlainColumn {
  type: 'boolean' | 'integer' | 'time';
  sql: string;
}

interface TextArrayColumn {
  type: 'textArray';
  sql: string;
}

/**
 * Relation of a role, stored as pairs in a separate table. All names are constants and never come
 * from a client.
 */
export interface RelationColumn {
  type: 'relation';
  /** Class of the members. */
  className: string;
  /** Table of the pairs, with the columns `role_id` and `member`. */
  table: 'role_user' | 'role_role';
  member: 'user_id' | 'child_id';
}

/** Column of the class's own table. */
export type OwnColumn = TextColumn | PlainColumn | TextArrayColumn;

/** Column of a member. `sql` is a constant and never comes from a client. */
type Column = OwnColumn | RelationColumn;

/**
 * Schema of a class, used to compile conditions. Members without a column are in the jsonb column.
 */
export interface ClassSchema {
  name: string;
  /** Table of the rows. */
  table: string;
  /** SQL expression of a row's ACL. Undefined if the class has no ACLs. */
  acl: string | undefined;
  /** The jsonb column of custom members. */
  jsonColumn: string;
  /** Columns by public member name, including aliases. */
  columns: ReadonlyMap<string, Column>;
  /**
   * Members that conditions and sort orders may not name. Otherwise a caller could guess their
   * values.
   */
  hidden?: ReadonlySet<string>;
}

/** Member that a condition, a sort order or a projection names. */
export type Field = ValueField | { name: string; column: RelationColumn };

/** Field that has a value. Relations are excluded. */
export type ValueField = { name: string; column: OwnColumn } | { name: string; path: string[] };

/** Returns whether a field is a relation. */
export const isRelation = (field: Field): field is { name: string; column: RelationColumn } =>
  'column' in field && field.column.type === 'relation';

/** Maximum length of a whole dotted name. */
const maxNameLength = 256;
const innerName = /^[A-Za-z0-9_-]{1,128}$/;

/**
 * Splits `a.b.c` and checks each part. Throws error 105 if the name is malformed or private.
 * Private members begin with `_` and cannot be filtered, sorted or projected
 * (develop/architecture.md#queries).
 */
export function parsePath(name: string): string[] {
  const [first = '', ...inner] = name.split('.');
  const isValid =
    name.length <= maxNameLength &&
    isMemberName(first) &&
    inner.length <= 8 &&
    inner.every((part) => innerName.test(part));
  if (!isValid) throw refuse('invalidKeyName');
  return [first, ...inner];
}

/**
 * Returns the field of a name. Throws error 105 if the name is invalid (`parsePath`), is hidden, or
 * is a path into a column.
 */
export function resolveField(name: string, cls: ClassSchema): Field {
  const path = parsePath(name);
  if (cls.hidden?.has(path[0] ?? ''))
    throw refuse('invalidKeyName', `${path[0]} cannot be queried.`);
  const column = cls.columns.get(path[0] ?? '');
  if (!column) return { name, path };
  if (path.length > 1) throw refuse('invalidKeyName', `${path[0]} has no members.`);
  return column.type === 'relation' ? { name, column } : { name, column };
}

/**
 * The endpoint of a Web Push subscription is stored as registration id. It is no value of the
 * member `registrationId`, so that conditions cannot test it (reference/protocol/webpush.md).
 */
const registrationId: Column = {
  type: 'text',
  sql: 'registration_id',
  spelling: '(CASE WHEN subscription_keys IS NULL THEN registration_id END)',
  shownIf: 'subscription_keys IS NULL',
};
/** Token in the form that the client sent. */
const sentToken = 'coalesce(device_token_sent, device_token)';
const topic: Column = { type: 'text', sql: 'topic' };
const teamId: Column = { type: 'text', sql: 'team_id' };

/** Columns of every class table. */
const commonColumns: readonly (readonly [string, Column])[] = [
  ['objectId', { type: 'text', sql: 'object_id' }],
  ['createdAt', { type: 'time', sql: 'created_at' }],
  ['updatedAt', { type: 'time', sql: 'updated_at' }],
];

/**
 * `_Installation`: columns of the table `installation` (develop/architecture.md#data). Neutral
 * names and wire names map to the same columns.
 */
export const installationClass: ClassSchema = {
  name: '_Installation',
  table: 'installation',
  // The ACL is a custom member. Old rows may contain an ACL that is not an object. It is ignored.
  acl: `(CASE WHEN jsonb_typeof(fields -> 'ACL') = 'object' THEN fields -> 'ACL' END)`,
  jsonColumn: 'fields',
  columns: new Map<string, Column>([
    ...commonColumns,
    ['deviceType', { type: 'text', sql: 'device_type', storedFormsOf: storedFormsOfDeviceType }],
    [
      'deviceToken',
      { type: 'text', sql: 'device_token', spelling: sentToken, storedFormsOf: storedFormsOfToken },
    ],
    ['installationId', { type: 'text', sql: 'installation_id' }],
    ['registrationId', registrationId],
    [
      'vendor',
      { type: 'text', sql: 'vendor', spelling: 'vendor_name', canonical: canonicalVendor },
    ],
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

/**
 * `_User`: columns of the table `app_user`. Hidden members cannot be filtered, sorted or projected
 * by name.
 */
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
 * Push records, used only for the `where` of their list. The class is not in `classes`, so
 * subqueries cannot name it. `status` has the values that clients see (domain/pushes/record.ts).
 * Members without a column have no value.
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
