/** Checks whether devices can use this URL: it needs TLS and a DNS name. */
export function isPublicAddress(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' && /[a-z]$/i.test(hostname) && !/(^|\.)localhost$/i.test(hostname);
}
