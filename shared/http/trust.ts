import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';

/** Secure contexts by PEM. The references are weak, so unused contexts are garbage-collected. */
const contexts = new Map<string, WeakRef<SecureContext>>();

/**
 * Creates the secure context of a client that trusts the system's authorities and, optionally, an
 * additional authority (PEM; protocol/admin-api.md#credentials-of-a-push-profile). The additional
 * authority is added to the list that the process has parsed. The option `ca` would replace this
 * list, and parsing the whole list again takes 10 to 15 ms and a megabyte. Throws if the PEM is
 * invalid.
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
 * certificate. Clients with the same authority share it. Throws if the PEM is invalid.
 */
export function sharedSecureContext(ca: string): SecureContext {
  const found = contexts.get(ca)?.deref();
  if (found) return found;
  for (const [other, reference] of contexts) if (!reference.deref()) contexts.delete(other);
  const context = secureContextTrusting(ca);
  contexts.set(ca, new WeakRef(context));
  return context;
}
