/**
 * Push services that Web Push endpoints may belong to (protocol/webpush.md#push-services). An
 * endpoint comes from a client, so a push is a request to a host that a stranger chose. Only listed
 * hosts are accepted, when a subscription is stored and again when a message is sent.
 */

/** Kinds of push services. Each kind has its own answers. `other` follows RFC 8030. */
export type PushService = 'google' | 'mozilla' | 'apple' | 'microsoft' | 'other';

/** Hosts of the browsers' push services. A name that begins with a dot includes its subdomains. */
const builtIn: readonly (readonly [host: string, service: PushService])[] = [
  ['fcm.googleapis.com', 'google'],
  ['android.googleapis.com', 'google'],
  ['jmt17.google.com', 'google'],
  ['updates.push.services.mozilla.com', 'mozilla'],
  ['.push.services.mozilla.com', 'mozilla'],
  ['.push.apple.com', 'apple'],
  ['.notify.windows.com', 'microsoft'],
];

/** Maximum length of an endpoint (UnifiedPush; the longest known endpoint has 500 characters). */
const maxEndpointChars = 1000;

/** Form of one entry of WEBPUSH_HOSTS: `host` or `host:port`, with IPv6 addresses in brackets. */
const entryForm = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/;

/** Returns the entries of WEBPUSH_HOSTS in lower case. */
const entriesOf = (text: string): string[] =>
  text
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== '');

/** Returns the first invalid entry of WEBPUSH_HOSTS; undefined if all are valid. */
export const invalidPushHost = (text: string): string | undefined =>
  entriesOf(text).find(
    (entry) => !entryForm.test(entry) || Number(/:(\d+)$/.exec(entry)?.[1]) > 65_535,
  );

let added: ReadonlySet<string> = new Set();

/** Sets the push services that WEBPUSH_HOSTS adds in this thread. */
export function setPushHosts(text: string): void {
  added = new Set(entriesOf(text));
}

/**
 * Returns the push service of a host, as `host` or `host:port` of a URL. Returns undefined if no
 * list contains the host. Added hosts may have a port; built-in hosts use port 443.
 */
export function serviceOfHost(host: string): PushService | undefined {
  const name = host.toLowerCase();
  const found = builtIn.find(([known]) =>
    known.startsWith('.') ? name.endsWith(known) : name === known,
  );
  if (found) return found[1];
  return added.has(name) ? 'other' : undefined;
}

/**
 * Parses an endpoint. Returns what is wrong with it, in words that follow the name of the member,
 * if it must not be stored.
 */
export function parseEndpoint(text: string): { url: URL } | { error: string } {
  if (text.length > maxEndpointChars)
    return { error: `must have at most ${maxEndpointChars} characters` };
  if (!URL.canParse(text)) return { error: 'must be an https:// URL' };
  const url = new URL(text);
  if (url.protocol !== 'https:') return { error: 'must be an https:// URL' };
  if (url.username !== '' || url.password !== '' || text.includes('#'))
    return { error: 'must have no user and no fragment' };
  if (serviceOfHost(url.host) === undefined)
    return { error: 'must belong to a push service that WEBPUSH_HOSTS or the built-in list names' };
  return { url };
}
