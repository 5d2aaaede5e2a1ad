import { equalInConstantTime, type Vault } from '../crypto.ts';

/** App and connector of a callback URL. */
export interface CallbackOwner {
  appId: string;
  connector: string;
}

/** 144 bits: gateways limit the URL to 128 bytes. */
const secretCharacters = 24;

const contextOf = ({ appId, connector }: CallbackOwner, generation: number) =>
  `callback ${connector} ${appId}${generation === 0 ? '' : ` ${generation}`}`;

/** Returns the generation that a secret names: `<generation>.<secret>`, and 0 without one. */
const generationIn = (secret: string): number => Number(/^([1-9]\d{0,6})\./.exec(secret)?.[1] ?? 0);

const textOf = (generation: number, derived: string): string =>
  `${generation === 0 ? '' : `${generation}.`}${derived.slice(0, secretCharacters)}`;

/**
 * Derives the secret of a callback URL; it is not stored. `generation`: the option
 * `receiptUrlGeneration` of the app.
 */
export const callbackSecret = (vault: Vault, owner: CallbackOwner, generation: number): string =>
  textOf(generation, vault.derive(contextOf(owner, generation)));

/**
 * Returns the generation of a receipt's secret; undefined if it does not belong to this owner. The
 * app decides whether this generation still counts. Accepts secrets of older keys.
 */
export function generationOfSecret(vault: Vault, owner: CallbackOwner, given: string): number | undefined {
  const generation = generationIn(given);
  const isRight = vault
    .derivedBy(contextOf(owner, generation))
    .map((derived) => equalInConstantTime(textOf(generation, derived), given))
    .includes(true);
  return isRight ? generation : undefined;
}

/** Returns `PUBLIC_URL/callbacks/:connector/:appId/:secret`, to which a gateway sends the receipts of an app. */
export const callbackUrl = (
  publicUrl: string,
  vault: Vault,
  { generation, ...owner }: CallbackOwner & { generation: number },
): string =>
  `${publicUrl}/callbacks/${owner.connector}/${owner.appId}/${callbackSecret(vault, owner, generation)}`;
