import type { SenderContext, StoredToken } from '../../../connectors/contract/connector.ts';
import { systemClock } from '../../../shared/clock.ts';

/** What a worker thread hands to a sender, kept in this process: a benchmark of connectors needs no database. */
export function memoryContext(): SenderContext {
  const kept = new Map<string, StoredToken>();
  const claimed = new Set<string>();
  return {
    clock: systemClock,
    messageStore: { enqueue: async () => undefined },
    tokens: {
      read: async (credential) => kept.get(credential) ?? null,
      claim: async (credential) => {
        if (claimed.has(credential)) return false;
        claimed.add(credential);
        return true;
      },
      keep: async (credential, token) => {
        kept.set(credential, token);
        claimed.delete(credential);
      },
      release: async (credential) => void claimed.delete(credential),
    },
    quota: { closed: async () => null, close: async () => undefined },
    // As long as a real one: most gateways are told it with each message.
    callbackUrl: `https://push.example.com/callbacks/vendor_a/${'a'.repeat(24)}/${'s'.repeat(24)}`,
    onCall: () => undefined,
  };
}
