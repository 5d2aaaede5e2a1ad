/** What URLs of the configuration may hold, by the parser that later connects to them. */

/**
 * Returns whether a text is the base of other URLs: an address with a path at most, no user, query
 * or fragment.
 */
export function isBaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { search, hash } = new URL(text);
  return hasNoUser(text) && `${search}${hash}` === '';
}

/**
 * Returns whether a URL names no user: most calls would leave the user and password out without a
 * word.
 */
export function hasNoUser(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return `${username}${password}` === '';
}

/**
 * Returns the Basic authentication (RFC 7617) of the user and password in a URL; undefined without
 * them. Every URL that `URL` accepts works: a percent sign that begins no escape is itself,
 * and an escape may be any byte.
 */
export function basicAuthorization({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  const bytes = Buffer.from(
    `${username}:${password}`.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    ),
    'latin1',
  );
  return `Basic ${bytes.toString('base64')}`;
}
