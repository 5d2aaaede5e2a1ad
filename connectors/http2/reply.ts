import type { Batch, Reply, Transport } from './transport.ts';

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
