/**
 * Maximum number of times that a path is decoded. A name is encoded once, and a proxy may encode it
 * again.
 */
const maxDepth = 4;

const isDots = (part: string): boolean => part === '.' || part === '..';

/** Decodes a path once. Returns undefined if it is malformed. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/**
 * True if a part of a path has the same meaning for all software, even if it is decoded several
 * times.
 */
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
 * True if the path of a request has the same meaning for all software (protocol/clients.md#paths).
 * Browsers and proxies resolve `.`, `..` and `\`, and some decode `%2f`, so the request could reach
 * another route than intended. A part that is encoded twice is checked too, because a proxy may
 * decode the path before forwarding it.
 */
export const isPlainPath = (path: string): boolean => path.split('/').every(isPlainPart);

/** True if a text can be one part of a path. */
export const isPathPart = (text: string): boolean =>
  text !== '' && !text.includes('/') && text.isWellFormed() && isPlainPart(text);

/**
 * Encodes one part of a path. Throws if the part is empty, is `.` or `..`, or contains a slash. The
 * URL would then name something else, such as a whole app instead of an audience.
 */
export function pathPart(part: string | number): string {
  const text = String(part);
  if (!isPathPart(text)) throw new Error(`${JSON.stringify(text)} cannot be a part of a path`);
  return encodeURIComponent(text);
}

/**
 * Returns a name that looks the same but can be part of a path. Full-width characters replace
 * slashes, dots, and `%` before two hex digits. Migration 0066 renames stored items in the same
 * way.
 */
export function reachableName(name: string): string {
  const plain = name
    .replaceAll('/', '／')
    .replaceAll('\\', '＼')
    .replaceAll(/%(?=[0-9a-f]{2})/gi, '％');
  return isDots(plain) ? plain.replaceAll('.', '．') : plain;
}
