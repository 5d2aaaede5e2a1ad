import type { SenderContext, StoredToken } from '../../../connectors/contract/connector.ts';
import { systemClock } from '../../../shared/clock.ts';

/** Creates a sender context that keeps its state in this process, because the benchmark has no database. */
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
    // As long as a real one, because most messages contain it.
    callbackUrl: `https://push.example.com/callbacks/vendor_a/${'a'.repeat(24)}/${'s'.repeat(24)}`,
    onCall: () => undefined,
  };
}
