import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';

/** Secure contexts by PEM, weakly held: an unused one is collected. */
const contexts = new Map<string, WeakRef<SecureContext>>();

/**
 * Creates the secure context of a client that trusts the system's authorities and an additional one
 * (PEM, optional; protocol/admin-api.md#credentials-of-a-push-profile). Adds to the list that the
 * process has parsed: the option `ca` would replace it, and parsing all of the list again takes 10
 * to 15 ms and a megabyte. Throws for an invalid PEM.
 */
export function secureContextTrusting(
  ca: string | undefined,
  options: Pick<SecureContextOptions, 'cert' | 'key'> = {},
): SecureContext {
  const context = createSecureContext({ ...options, minVersion: 'TLSv1.2' });
  if (ca !== undefined) context.context.addCACert(ca);
  return context;
}

/**
 * Returns the secure context of clients that trust an additional authority (PEM) and have no client
 * certificate; clients with the same authority share it. Throws for an invalid PEM.
 */
export function sharedSecureContext(ca: string): SecureContext {
  const found = contexts.get(ca)?.deref();
  if (found) return found;
  for (const [other, reference] of contexts) if (!reference.deref()) contexts.delete(other);
  const context = secureContextTrusting(ca);
  contexts.set(ca, new WeakRef(context));
  return context;
}
