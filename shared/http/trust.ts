import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/** Secure contexts by PEM, weakly held: an unused one is collected. */
const contexts = new Map<string, WeakRef<SecureContext>>();

/**
 * Returns `ca` with the system's authorities, which it would replace
 * (protocol/admin-api.md#credentials-of-a-push-profile).
 */
export const systemAuthoritiesWith = (ca: string): string[] => [...getCACertificates('default'), ca];

/**
 * Returns the secure context of clients that trust an additional authority (PEM) and have no client certificate.
 * Creating one takes 30 ms and a copy of the system's list, so clients with the same authority share it. Throws for an
 * invalid PEM.
 */
export function sharedSecureContext(ca: string): SecureContext {
  const found = contexts.get(ca)?.deref();
  if (found) return found;
  for (const [other, reference] of contexts) if (!reference.deref()) contexts.delete(other);
  const context = createSecureContext({ ca: systemAuthoritiesWith(ca), minVersion: 'TLSv1.2' });
  contexts.set(ca, new WeakRef(context));
  return context;
}
