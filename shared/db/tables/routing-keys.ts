import type { RoutingKey } from '../../domain/installations/installation.ts';
import { maxLocaleLength } from '../../domain/pushes/languages.ts';
import { maxZoneLength } from '../../domain/pushes/local-time.ts';

/**
 * SQL expressions of `RoutingKey`. FCM has two labels, and the stored spelling selects one of
 * them.
 */
const expressions = {
  device_type: 'device_type',
  vendor: `CASE WHEN vendor = 'vendor_g' AND lower(vendor_name) = 'fcm' THEN 'fcm' ELSE vendor END`,
  device_profile: 'device_profile',
  topic: 'topic',
  team_id: 'team_id',
  has_token: 'device_token IS NOT NULL',
  has_registration: 'registration_id IS NOT NULL',
  has_installation_id: 'installation_id IS NOT NULL',
} satisfies Record<keyof RoutingKey, string>;

/** Columns of `RoutingKey`, for SELECT. */
export const traitColumns = Object.entries(expressions)
  .map(([name, expression]) => `${expression} AS ${name}`)
  .join(', ');

/** The same expressions for GROUP BY, where the names alone would mean the columns of the table. */
export const routingExpressions = Object.values(expressions).join(', ');

/** SQL of an installation's `locale`. Longer values are cut and have no meaning. */
export const localeExpression = `left(fields ->> 'locale', ${maxLocaleLength + 1})`;

/** SQL of an installation's `timeZone`. Longer values are cut and have no meaning. */
export const zoneExpression = `left(time_zone, ${maxZoneLength + 1})`;

/**
 * Returns SQL of the routing key of a device: the expressions as one text, in PostgreSQL's text
 * format of a row, with the locale and the time zone if they are asked for. Reading one column is
 * several times as fast as reading eight, and the text can be the key of a map.
 */
export function routingKeyText({ hasLocale = false, hasZone = false } = {}): string {
  const locale = hasLocale ? `, ${localeExpression}` : hasZone ? ', NULL' : '';
  return `ROW(${routingExpressions}${locale}${hasZone ? `, ${zoneExpression}` : ''})::text`;
}

/**
 * Fields in the text of a row. An empty field is NULL, and quotes and backslashes are doubled
 * (PostgreSQL, 8.16.6).
 */
const rowField = /[,(](?:"((?:[^"\\]|""|\\.)*)"|([^,()"\\]*))/gs;

const fieldsOf = (text: string): (string | null)[] =>
  [...text.matchAll(rowField)].map(([, quoted, plain]) =>
    quoted === undefined
      ? plain || null
      : quoted.replaceAll(/""|\\(.)/gs, (pair, escaped) => escaped ?? pair[0]),
  );

/** Returns the locale in a text of `routingKeyText`. */
export const localeOfRoutingKey = (text: string): string | null =>
  fieldsOf(text)[Object.keys(expressions).length] ?? null;

/** Returns the time zone in a text of `routingKeyText`. */
export const zoneOfRoutingKey = (text: string): string | null =>
  fieldsOf(text)[Object.keys(expressions).length + 1] ?? null;

/** Routing key of the channel of a broadcast, which is no device, as text. */
export const channelRoutingKey = '(ios,,,,,t,f,f)';

/** Parses a text of `routingKeyText`. Ignores the locale and the time zone. */
export function parseRoutingKey(text: string): RoutingKey {
  const fields = fieldsOf(text);
  const [deviceType, vendor = null, deviceProfile = null, topic = null, teamId = null, ...has] =
    fields;
  return {
    device_type: deviceType ?? '',
    vendor,
    device_profile: deviceProfile,
    topic,
    team_id: teamId,
    has_token: has[0] === 't',
    has_registration: has[1] === 't',
    has_installation_id: has[2] === 't',
  };
}
