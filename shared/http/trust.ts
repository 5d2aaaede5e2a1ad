import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/** For as long as a door holds on to it: what no door needs any more takes no memory. */
const contexts = new Map<string, WeakRef<SecureContext>>();

/** `ca` replaces the system's list unless that is given too (protocol/admin-api.md#credentials-of-a-push-profile). */
export const systemAuthoritiesWith = (ca: string): string[] => [...getCACertificates('default'), ca];

/**
 * What doors present and trust that have an authority (PEM) of their own and no client certificate. Making one
 * takes 30 ms and a copy of the system's list, so all doors with the same authority share it. Throws when the PEM is
 * wrong.
 */
export function sharedSecureContext(ca: string): SecureContext {
  const found = contexts.get(ca)?.deref();
  if (found) return found;
  for (const [other, reference] of contexts) if (!reference.deref()) contexts.delete(other);
  const context = createSecureContext({ ca: systemAuthoritiesWith(ca), minVersion: 'TLSv1.2' });
  contexts.set(ca, new WeakRef(context));
  return context;
}
