/** Checks of URLs in the configuration, by the parser that is later used to connect. */

/** True if a text is a base URL: it may have a path, but no user, query or fragment. */
export function isBaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { search, hash } = new URL(text);
  return hasNoUser(text) && `${search}${hash}` === '';
}

/** True if a URL contains no user. Most calls would silently ignore user and password. */
export function hasNoUser(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return `${username}${password}` === '';
}

/**
 * Returns the value for Basic authentication (RFC 7617) from user and password of a URL; undefined
 * if there are none. Accepts all URLs that `URL` accepts: a percent sign that does not start an
 * escape stays, and an escape may be any byte.
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
