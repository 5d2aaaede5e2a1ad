import { json, noBody, route } from '../../route.ts';

/** Where gateways send delivery receipts (shared/http/callback-url.ts); each connector reads its gateway's form of them. */
const path = '/callbacks/:connector/:appId/:secret';

/** A thousand receipts, the most that any gateway is known to merge, are some 400 KB. */
const bodyBytes = 2 * 1024 * 1024;

const addressOf = ({ connector = '', appId = '', secret = '' }: Record<string, string>) => ({
  connector,
  appId,
  secret,
});

export default [
  route({
    method: 'POST',
    path,
    summary: 'Takes the delivery receipts that a gateway sends; the body is in the form of that gateway.',
    auth: 'none',
    isRaw: true,
    limit: { bodyBytesBelow: bodyBytes },
    admit: (params, { receipts }) => receipts.authenticate(addressOf(params)),
    handle: async ({ params, raw }, { receipts }) =>
      json(await receipts.record(addressOf(params), { headers: raw?.headers ?? {}, body: raw?.text ?? '' })),
  }),
  // For whoever looks whether the address is there before using it; HEAD comes with it.
  route({
    method: 'GET',
    path,
    summary: 'Says that the address for receipts exists; 404 where it does not.',
    auth: 'none',
    limit: noBody,
    admit: (params, { receipts }) => receipts.authenticate(addressOf(params)),
    handle: () => json({}),
  }),
];
