import { readable, sha256, type Vault } from '../../../crypto.ts';
import { sealContexts } from '../../../domain/apps/seal-contexts.ts';
import type { AuthData } from '../../../domain/users/auth-data.ts';
import { resealedMembers } from '../../../domain/users/auth-tokens.ts';
import { sealedSession, sessionTokens } from '../../../domain/users/session-tokens.ts';

/** Encrypted value of a row, and the row's key and further columns as text. */
export interface SealedRow {
  appId: string;
  /** Columns of `key` and `context`, by name. */
  columns: Readonly<Record<string, string>>;
  /** Value of the column: `\x…` for bytes, else JSON. */
  value: string;
}

/** Column with values that are encrypted under CARILLON_SECRET. Every table of one has the column `app_id`. */
export interface SealedPlace {
  table: string;
  column: string;
  type: 'bytea' | 'jsonb';
  /** Columns of the primary key after `app_id`, with their types. */
  key: Readonly<Record<string, 'text' | 'bigint' | 'bytea'>>;
  /** Further columns that the context needs. */
  context: readonly string[];
  /** SQL: ids of the keys that the values of a row are encrypted under, as an array of texts. */
  keyIds: string;
  /** SQL: value to store, from `t` (the row) and `n.renewed` (what `reseal` returned, as the column's type). */
  stored: string;
  /** Encrypts a value under the first key; returns it in the form of `value`, undefined if no key decrypts it. */
  reseal(vault: Vault, row: SealedRow): string | undefined;
}

const bytesOf = (value: string): Buffer => Buffer.from(value.slice(2), 'hex');
const textOf = (bytes: Buffer): string => `\\x${bytes.toString('hex')}`;

/** Decrypts and encrypts; undefined if no key decrypts the value. */
function renewed(vault: Vault, value: string, context: string): string | undefined {
  return readable(() => textOf(vault.seal(vault.open(bytesOf(value), context), context)));
}

/** Describes a column of bytes that holds one encrypted value: version, key id (4 bytes), and the rest. */
function bytesPlace(
  place: Pick<SealedPlace, 'table' | 'column' | 'key'> & { context?: readonly string[] },
  contextOf: (row: SealedRow) => string,
): SealedPlace {
  return {
    context: [],
    ...place,
    type: 'bytea',
    keyIds: `ARRAY[encode(substring(t.${place.column} FROM 2 FOR 4), 'hex')]`,
    stored: 'n.renewed',
    reseal: (vault, row) => renewed(vault, row.value, contextOf(row)),
  };
}

const column = ({ columns }: SealedRow, name: string): string => columns[name] ?? '';

const sessions: SealedPlace = {
  table: 'app_user',
  column: 'session_nonce',
  type: 'bytea',
  key: { id: 'bigint' },
  context: ['object_id', 'session_hash'],
  keyIds: `ARRAY[encode(substring(t.session_nonce FROM CASE WHEN length(t.session_nonce) = 16 THEN 1 ELSE 2 END FOR 4), 'hex')]`,
  stored: 'n.renewed',
  reseal: resealSession,
};

/** Encrypts the token of a session, so that it does not depend on the key that it was derived with. */
function resealSession(vault: Vault, row: SealedRow): string | undefined {
  const [objectId, nonce] = [column(row, 'object_id'), bytesOf(row.value)];
  const hash = bytesOf(column(row, 'session_hash'));
  const tokens = readable(() => sessionTokens(vault, row.appId, objectId, nonce)) ?? [];
  const token = tokens.find((one) => sha256(one).equals(hash));
  return token === undefined ? undefined : textOf(sealedSession(vault, row.appId, objectId, token));
}

const platforms: SealedPlace = {
  table: 'app_user',
  column: 'auth_data',
  type: 'jsonb',
  key: { id: 'bigint' },
  context: [],
  // Bytes 2 to 5 are within the first 8 characters of the base64 text.
  keyIds: `ARRAY(SELECT encode(substring(decode(left(e.value ->> '_sealed', 8), 'base64') FROM 2 FOR 4), 'hex')
                   FROM jsonb_each(t.auth_data) AS e WHERE e.value ->> '_sealed' ~ '^[A-Za-z0-9+/]{8}')`,
  // Changes the encrypted members only: a number of another member keeps all its digits.
  stored: `(SELECT jsonb_object_agg(e.key, CASE WHEN n.renewed ? e.key
                     THEN e.value || jsonb_build_object('_sealed', n.renewed -> e.key) ELSE e.value END)
              FROM jsonb_each(t.auth_data) AS e)`,
  reseal(vault, { appId, value }) {
    const authData: AuthData = JSON.parse(value);
    const members = resealedMembers(vault, appId, authData);
    return Object.keys(members).length > 0 ? JSON.stringify(members) : undefined;
  },
};

/**
 * All columns with encrypted values. A column of bytes that is neither here nor among the digests that
 * `test/shared/db/sealed-places.test.ts` names fails that test.
 */
export const sealedPlaces: readonly SealedPlace[] = [
  bytesPlace({ table: 'app', column: 'secrets', key: {} }, ({ appId }) => sealContexts.app(appId)),
  bytesPlace(
    { table: 'push_profile', column: 'credentials', key: { connector: 'text', name: 'text' } },
    (row) => sealContexts.profile(row.appId, column(row, 'connector'), column(row, 'name')),
  ),
  ...['candidate', 'previous'].map((name) =>
    bytesPlace({ table: 'profile_rotation', column: name, key: { connector: 'text', name: 'text' } }, (row) =>
      sealContexts.profile(row.appId, column(row, 'connector'), column(row, 'name')),
    ),
  ),
  bytesPlace(
    { table: 'gateway_token', column: 'value', key: { connector: 'text', credential: 'bytea' } },
    (row) => sealContexts.gatewayToken(row.appId, column(row, 'connector')),
  ),
  bytesPlace(
    { table: 'outbox', column: 'body', key: { id: 'bigint' }, context: ['kind', 'recipient', 'type'] },
    (row) =>
      sealContexts.message({
        appId: row.appId,
        kind: column(row, 'kind'),
        to: column(row, 'recipient'),
        type: column(row, 'type'),
      }),
  ),
  bytesPlace(
    { table: 'failed_receipt', column: 'call', key: { id: 'bigint' }, context: ['connector', 'digest'] },
    (row) => sealContexts.receipt(row.appId, column(row, 'connector'), column(row, 'digest')),
  ),
  bytesPlace({ table: 'captcha', column: 'answer', key: { token: 'text' } }, (row) =>
    sealContexts.captcha(row.appId, column(row, 'token')),
  ),
  sessions,
  platforms,
];

/** Returns the name of a place: `<table>.<column>`. */
export const nameOf = ({ table, column: name }: SealedPlace): string => `${table}.${name}`;
