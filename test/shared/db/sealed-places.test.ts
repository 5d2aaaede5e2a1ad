import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { nameOf, sealedColumns } from '../../../shared/db/tables/secrets.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();

/** Bytea columns without encrypted values: digests, a picture, and counts of a batch. */
const notEncrypted = [
  'app_user.session_hash',
  'captcha.image',
  'captcha.validate_digest',
  'channel_message.digest',
  'console_login_code.admin_mark',
  'console_login_code.digest',
  'console_session.admin_mark',
  'console_session.digest',
  'console_token.digest',
  'gateway_token.credential',
  'link_token.digest',
  'login_lock.identifier',
  'push_batch.settled',
];

/** Files that encrypt, with the columns that store their values. */
const encryptingFiles: Record<string, string[]> = {
  'api/services/captchas/captchas.ts': ['captcha.answer'],
  // A cookie, which is stored nowhere.
  'api/services/operator/access/oidc-logins.ts': [],
  'api/services/push/receipts.ts': ['failed_receipt.call'],
  'shared/db/tables/apps.ts': ['app.secrets'],
  'shared/db/tables/profiles.ts': [
    'profile_rotation.candidate',
    'profile_rotation.previous',
    'push_profile.credentials',
  ],
  'shared/db/tables/gateways.ts': ['gateway_token.value'],
  'shared/db/tables/outbox.ts': ['outbox.body'],
  'shared/db/tables/webhooks.ts': ['webhook.previous_key', 'webhook.secrets'],
  'shared/domain/users/auth-data.ts': ['app_user.auth_data'],
  'shared/domain/users/user.ts': ['app_user.session_nonce'],
  // The rotation itself, and the warm-up of the cipher, which stores nothing.
  'shared/db/tables/secrets.ts': [],
  'dispatcher/sending/worker.ts': [],
  'dispatcher/startup/warm-up.ts': [],
};

const places = sealedColumns.map(nameOf).toSorted();

test('the secret rotation covers every bytea column with encrypted values', async () => {
  const { rows } = await api.db.query<{ name: string }>(
    `SELECT table_name || '.' || column_name AS name FROM information_schema.columns
      WHERE table_schema = current_schema() AND data_type = 'bytea'`,
  );
  const bytes = sealedColumns.filter(({ type }) => type === 'bytea').map(nameOf);
  expect(rows.map(({ name }) => name).toSorted()).toEqual([...bytes, ...notEncrypted].toSorted());
});

test('every file that encrypts stores its values in a column that the rotation covers', () => {
  const root = fileURLToPath(new URL('../../..', import.meta.url));
  const folders = ['api', 'connectors', 'dispatcher', 'ops', 'shared'];
  const found = execFileSync('git', ['grep', '-lE', '\\.seal\\(', '--', ...folders], { cwd: root });
  expect(found.toString().trim().split('\n').toSorted()).toEqual(
    Object.keys(encryptingFiles).toSorted(),
  );
  expect(Object.values(encryptingFiles).flat().toSorted()).toEqual(places);
});
