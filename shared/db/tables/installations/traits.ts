import type { DeviceTraits } from '../../../domain/installations/installation.ts';

/** Expressions of the members of `DeviceTraits`. FCM has two labels: the stored spelling tells which one is meant. */
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

/** The eight columns of `DeviceTraits`. */
export const traitColumns = Object.entries(expressions)
  .map(([name, expression]) => `${expression} AS ${name}`)
  .join(', ');

/**
 * All of them as one text, PostgreSQL's text form of a row: one column is read several times as fast as eight, and a
 * text is a key as it is.
 */
export const traitsText = `ROW(${Object.values(expressions).join(', ')})::text`;

/** Fields of a row's text form: empty is NULL; a quoted one doubles its quotes and backslashes (PostgreSQL, 8.16.6). */
const rowField = /[,(](?:"((?:[^"\\]|""|\\.)*)"|([^,()"\\]*))/gs;

/** Reads what `traitsText` wrote. */
export function parseTraits(text: string): DeviceTraits {
  const fields = [...text.matchAll(rowField)].map(([, quoted, plain]) =>
    quoted === undefined
      ? plain || null
      : quoted.replaceAll(/""|\\(.)/gs, (pair, escaped) => escaped ?? pair[0]),
  );
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
