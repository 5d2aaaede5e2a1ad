import type { DeviceTraits } from '../../../domain/installations/installation.ts';
import { maxZoneLength } from '../../../domain/pushes/local-time.ts';
import { maxLocaleLength } from '../../../domain/pushes/locales.ts';

/** Expressions of the members of `DeviceTraits`. FCM has two labels: the stored spelling selects one. */
const expressions = {
  device_type: 'device_type',
  vendor: `CASE WHEN vendor = 'vendor_g' AND lower(vendor_name) = 'fcm' THEN 'fcm' ELSE vendor END`,
  device_profile: 'device_profile',
  topic: 'topic',
  team_id: 'team_id',
  has_token: 'device_token IS NOT NULL',
  has_registration: 'registration_id IS NOT NULL',
  has_installation_id: 'installation_id IS NOT NULL',
} satisfies Record<keyof DeviceTraits, string>;

/** Columns of `DeviceTraits`, for SELECT. */
export const traitColumns = Object.entries(expressions)
  .map(([name, expression]) => `${expression} AS ${name}`)
  .join(', ');

/** Expressions of `DeviceTraits`, for GROUP BY: the names alone would mean the table's columns. */
export const traitExpressions = Object.values(expressions).join(', ');

/**
 * Expressions as one text, PostgreSQL's text form of a row: one column reads several times as fast as eight, and the
 * text can be a map key.
 */
export const traitsText = `ROW(${traitExpressions})::text`;

/** Expression of the `locale` of an installation; a longer one is cut and means nothing. */
export const localeExpression = `left(fields ->> 'locale', ${maxLocaleLength + 1})`;

/** As `traitsText`, with the locale at the end. */
export const localizedTraitsText = `ROW(${traitExpressions}, ${localeExpression})::text`;

/** Expression of the `timeZone` of an installation; a longer one is cut and means nothing. */
export const zoneExpression = `left(time_zone, ${maxZoneLength + 1})`;

/** As `traitsText` or `localizedTraitsText`, with the time zone behind the place of the locale. */
export const zonedTraitsText = `ROW(${traitExpressions}, NULL, ${zoneExpression})::text`;
export const zonedLocalizedTraitsText = `ROW(${traitExpressions}, ${localeExpression}, ${zoneExpression})::text`;

/** Fields of a row's text form: empty is NULL; a quoted one doubles its quotes and backslashes (PostgreSQL, 8.16.6). */
const rowField = /[,(](?:"((?:[^"\\]|""|\\.)*)"|([^,()"\\]*))/gs;

const fieldsOf = (text: string): (string | null)[] =>
  [...text.matchAll(rowField)].map(([, quoted, plain]) =>
    quoted === undefined
      ? plain || null
      : quoted.replaceAll(/""|\\(.)/gs, (pair, escaped) => escaped ?? pair[0]),
  );

/** Returns the locale in the text of `localizedTraitsText`, or of that with the time zone. */
export const localeOfTraits = (text: string): string | null =>
  fieldsOf(text)[Object.keys(expressions).length] ?? null;

/** Returns the time zone in the text of `zonedTraitsText` or `zonedLocalizedTraitsText`. */
export const zoneOfTraits = (text: string): string | null =>
  fieldsOf(text)[Object.keys(expressions).length + 1] ?? null;

/** Parses the text of `traitsText`, or one of those with more behind it. */
export function parseTraits(text: string): DeviceTraits {
  const fields = fieldsOf(text);
  const [deviceType, vendor = null, deviceProfile = null, topic = null, teamId = null, ...has] = fields;
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
