/** Modes of libpq, and the one that `pg` adds; what each means for us stands at `connectionUrl`. */
const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'] as const;

/** Modes whose name differs from what `pg` is to do. */
const pgModes: Readonly<Record<string, string>> = {
  allow: 'disable',
  prefer: 'require',
  'no-verify': 'require',
};

/**
 * A database URL as `pg` is to get it, so that `sslmode` means what libpq means by it (PostgreSQL documentation,
 * "SSL Support"): `require` encrypts and verifies nothing, unless `sslrootcert` is given; `verify-ca` verifies the
 * certificate, `verify-full` the host name too. `pg` by itself takes `prefer`, `require` and `verify-ca` for
 * `verify-full`, and fails for `allow`.
 *
 * `pg` cannot try one way and then the other: `prefer` is `require`, `allow` is `disable`, as each begins. Without
 * `sslmode` nothing is encrypted. `sslrootcert=system` stands for the authorities that Node trusts.
 */
export function connectionUrl(url: string): string {
  const mark = url.indexOf('?');
  if (mark < 0) return url;
  const params = new URLSearchParams(url.slice(mark + 1));
  const mode = params.get('sslmode');
  const isSystem = params.get('sslrootcert') === 'system';
  if (mode === null && !isSystem) return url;
  // libpq: with the system's authorities anything less than the host name would prove nothing.
  params.set('sslmode', isSystem ? 'verify-full' : (pgModes[mode ?? ''] ?? mode ?? ''));
  if (isSystem) params.delete('sslrootcert');
  params.set('uselibpqcompat', 'true');
  return `${url.slice(0, mark)}?${params}`;
}

/** What is wrong with the `sslmode` of a database URL, or undefined. */
export function sslModeError(url: string): string | undefined {
  const mark = url.indexOf('?');
  const params = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1));
  const mode = params.get('sslmode');
  if (mode !== null && !sslModes.some((known) => known === mode))
    return `expected sslmode to be one of ${sslModes.slice(0, -1).join(', ')}`;
  if (mode === 'verify-ca' && !params.has('sslrootcert'))
    return 'expected sslrootcert=<file> beside sslmode=verify-ca (sslmode=verify-full goes without)';
  return undefined;
}
