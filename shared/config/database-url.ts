import { parse } from 'pg-connection-string';

/** Modes of libpq, and one that `pg` adds; `connectionUrl` documents their meaning. */
const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'] as const;

/** Modes that `pg` gets under another name. */
const pgModes: Readonly<Record<string, string>> = {
  allow: 'disable',
  prefer: 'require',
  'no-verify': 'require',
};

/**
 * Converts a database URL for `pg`, so that `sslmode` has the meaning of libpq (PostgreSQL documentation, "SSL
 * Support"): `require` encrypts, and verifies the certificate only with `sslrootcert`; `verify-ca` verifies the
 * certificate, `verify-full` the host name too. `pg` itself treats `prefer`, `require` and `verify-ca` as
 * `verify-full`, and fails for `allow`.
 *
 * `pg` does not fall back from one mode to another: `prefer` becomes `require`, and `allow` becomes `disable`. Without
 * `sslmode` the connection is not encrypted. `sslrootcert=system` means the authorities that Node trusts.
 */
export function connectionUrl(url: string): string {
  const mark = url.indexOf('?');
  if (mark < 0) return url;
  const params = new URLSearchParams(url.slice(mark + 1));
  const mode = params.get('sslmode');
  const isSystem = params.get('sslrootcert') === 'system';
  if (mode === null && !isSystem) return url;
  // As in libpq: with the system's authorities, a certificate without a check of the host name proves nothing.
  params.set('sslmode', isSystem ? 'verify-full' : (pgModes[mode ?? ''] ?? mode ?? ''));
  if (isSystem) params.delete('sslrootcert');
  params.set('uselibpqcompat', 'true');
  return `${url.slice(0, mark)}?${params}`;
}

/**
 * Returns the error of a database URL, without its user and password; undefined if `pg` can use it.
 */
export function databaseUrlError(url: string): string | undefined {
  const mark = url.indexOf('?');
  const params = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1));
  const mode = params.get('sslmode');
  if (mode !== null && !sslModes.some((known) => known === mode))
    return `expected sslmode to be one of ${sslModes.slice(0, -1).join(', ')}`;
  if (mode === 'verify-ca' && !params.has('sslrootcert'))
    return 'expected sslrootcert=<file> beside sslmode=verify-ca (sslmode=verify-full goes without)';
  try {
    parse(connectionUrl(url));
    return undefined;
  } catch (error) {
    if (error instanceof URIError)
      return 'expected UTF-8 in the escapes of user, password and name (`%25` is `%`)';
    return `cannot be read: ${error instanceof Error ? error.message : ''}`;
  }
}
