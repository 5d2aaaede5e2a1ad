/** Most times that a path may be encoded; a name needs one, and a proxy may add one. */
const maxDepth = 4;

const isDots = (part: string): boolean => part === '.' || part === '..';

/** Decodes a path once; undefined if it is malformed. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Tells whether one part of a path means the same to everybody, however often it is decoded. */
function isPlainPart(part: string): boolean {
  let text = part;
  for (let depth = 0; depth <= maxDepth; depth++) {
    if (isDots(text) || /\\|%2f|%5c/i.test(text)) return false;
    const decoded = text.includes('%') ? decode(text) : undefined;
    if (decoded === undefined) return true;
    text = decoded;
  }
  return false;
}

/**
 * Tells whether the path of a request means the same to everybody (protocol/clients.md#paths).
 * Browsers and proxies resolve `.`, `..` and `\`, and some decode `%2f`: the request reaches
 * another route than its sender meant. A part that is encoded twice is checked as well, because a
 * proxy may decode the path before it forwards it.
 */
export const isPlainPath = (path: string): boolean => path.split('/').every(isPlainPart);

/** Tells whether a text can be one part of a path. */
export const isPathPart = (text: string): boolean =>
  text !== '' && !text.includes('/') && text.isWellFormed() && isPlainPart(text);

/**
 * Encodes one part of a path. Throws for a part that is empty, `.` or `..`, or contains a slash:
 * the URL would name something else, such as the whole app in place of an audience.
 */
export function pathPart(part: string | number): string {
  const text = String(part);
  if (!isPathPart(text)) throw new Error(`${JSON.stringify(text)} cannot be a part of a path`);
  return encodeURIComponent(text);
}

/**
 * Returns a name that can be a part of a path and looks the same: full-width characters replace
 * slashes, dots, and a `%` that looks like an encoded character. Migration 0066 renames stored
 * items in the same way.
 */
export function reachableName(name: string): string {
  const plain = name
    .replaceAll('/', '／')
    .replaceAll('\\', '＼')
    .replaceAll(/%(?=[0-9a-f]{2})/gi, '％');
  return isDots(plain) ? plain.replaceAll('.', '．') : plain;
}
