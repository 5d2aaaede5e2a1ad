import { equalInConstantTime, type Vault } from '../crypto.ts';

/** App and connector of a callback URL. */
export interface CallbackOwner {
  appId: string;
  connector: string;
}

/** 144 bits: gateways limit the URL to 128 bytes. */
const secretCharacters = 24;

const contextOf = ({ appId, connector }: CallbackOwner) => `callback ${connector} ${appId}`;

/** Derives the secret of a callback URL; it is not stored. */
export function callbackSecret(vault: Vault, owner: CallbackOwner): string {
  return vault.derive(contextOf(owner)).slice(0, secretCharacters);
}

/** Returns whether a receipt's secret belongs to this owner; accepts secrets of older keys. */
export function isCallbackSecret(vault: Vault, owner: CallbackOwner, given: string): boolean {
  return vault
    .derivedBy(contextOf(owner))
    .map((derived) => equalInConstantTime(derived.slice(0, secretCharacters), given))
    .includes(true);
}

/** Returns `PUBLIC_URL/callbacks/:connector/:appId/:secret`, to which a gateway sends the receipts of an app. */
export function callbackUrl(publicUrl: string, vault: Vault, owner: CallbackOwner): string {
  return `${publicUrl}/callbacks/${owner.connector}/${owner.appId}/${callbackSecret(vault, owner)}`;
}
