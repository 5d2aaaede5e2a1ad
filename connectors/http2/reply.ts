import type { Batch, Reply, Transport } from './transport.ts';

/** `Retry-After` in either form of RFC 9110 10.2.3 as milliseconds from now; null when it is neither. */
export function retryAfterMs(value: string, epochMs: number): number | null {
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - epochMs);
}

/** One request by itself, over a transport that sends many. */
export async function requestOne(transport: Pick<Transport, 'sendMany'>, batch: Batch): Promise<Reply> {
  let only: Reply | undefined;
  await transport.sendMany(batch, (_, reply) => {
    only = { ...reply };
    return undefined;
  });
  if (only === undefined) throw new Error('a batch of one has one reply');
  return only;
}
