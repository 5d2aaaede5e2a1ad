import { expect, test } from 'vitest';
import {
  parseRoutingKey,
  routingKeyText,
  traitColumns,
} from '../../../../../shared/db/tables/routing-keys.ts';
import type { RoutingKey } from '../../../../../shared/domain/installations/installation.ts';
import { openTestDatabase } from '../../../../support/database.ts';

const { db } = await openTestDatabase();

test.each([
  [{ topic: 'com.example.app', device_token: 'ab' }],
  [{ topic: '', team_id: ' ' }],
  [
    {
      topic: 'a,b',
      team_id: '(c)',
      device_profile: '"quoted" \\ and \\" both',
      installation_id: 'i',
    },
  ],
  [
    {
      device_profile: 'two\nlines\tand a tab, 中文',
      vendor: 'vendor_g',
      vendor_name: 'FCM',
      registration_id: 'r',
    },
  ],
  [{ vendor: 'vendor_g', vendor_name: 'gcm', device_profile: ',,,' }],
])('the text of a routing key parses to the values of the columns: %j', async (members) => {
  const names = Object.keys(members);
  await db.query(
    `INSERT INTO installation (app_id, object_id,
      device_type${names.map((name) => `, ${name}`).join('')})
     VALUES ('app', gen_random_uuid()::text,
       'android'${names.map((_, i) => `, $${i + 1}`).join('')})`,
    Object.values(members),
  );
  const { rows } = await db.query<RoutingKey & { text: string }>(
    `SELECT ${traitColumns}, ${routingKeyText()} AS text FROM installation ORDER BY id DESC LIMIT 1`,
  );
  const { text, ...traits } = rows[0] ?? { text: '' };
  expect(parseRoutingKey(text)).toEqual(traits);
});
